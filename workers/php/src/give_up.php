<?php
// Callers that give up calls, for runs that ask for it: PROTOCOL.md, `GiveUp`. A child that is forked in the
// middle of the work uses the connections of its parent.

declare(strict_types=1);

final class GiveUp
{
    private int $turn = 0;

    /** @param array{every: int, after_ms: int, begin_ms: int, end_ms: int} $asked */
    private function __construct(private readonly array $asked, private readonly int $startNs)
    {
    }

    /**
     * A lane's script with calls that are given up, if that is asked for.
     *
     * @param Closure(): iterable<Operation> $script
     * @param array{every: int, after_ms: int, begin_ms: int, end_ms: int}|null $asked
     * @return Closure(): iterable<Operation>
     */
    public static function script(Closure $script, ?array $asked, int $startNs): Closure
    {
        $giveUp = $asked === null ? null : new self($asked, $startNs);
        return $giveUp ? static fn () => $giveUp->operations($script()) : $script;
    }

    /**
     * Operations, some of which are given up.
     *
     * @param iterable<Operation> $operations
     * @return Generator<Operation>
     */
    private function operations(iterable $operations): Generator
    {
        foreach ($operations as $op) {
            $call = $op->call;
            $copy = clone $op;
            // A child must not write: what it writes would be there before the caller's call begins.
            $copy->call = fn (mixed ...$arguments): mixed => $this->hasCome() && $op->kind === 'get'
                ? $this->forked($call, $arguments) : $call(...$arguments);
            yield $copy;
        }
    }

    /** Whether the call that begins now is given up: each `every`-th of those that begin in the part. */
    private function hasCome(): bool
    {
        $sinceMs = intdiv(hrtime(true) - $this->startNs, 1_000_000);
        $inPart = $sinceMs >= $this->asked['begin_ms'] && $sinceMs < $this->asked['end_ms'];
        return $inPart && ++$this->turn % $this->asked['every'] === 0;
    }

    /** @param list<mixed> $arguments */
    private function forked(callable $call, array $arguments): mixed
    {
        $child = pcntl_fork();
        if ($child === 0) {
            $call(...$arguments);
            posix_kill(posix_getpid(), SIGKILL); // at once: PHP would close what its parent has open
        }
        usleep(1000 * $this->asked['after_ms']);
        posix_kill($child, SIGKILL);
        pcntl_waitpid($child, $status);
        return $call(...$arguments);
    }
}
