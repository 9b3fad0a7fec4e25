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
     * Operations, some of which are given up. Each is asked for just before its turn.
     *
     * @param iterable<Operation> $operations
     * @return Generator<Operation>
     */
    private function operations(iterable $operations): Generator
    {
        foreach ($operations as $op) {
            yield $this->isGivenUp($op) ? $this->forked($op) : $op;
        }
    }

    /** A child must not write: what it writes would be there before the caller's call begins. */
    private function isGivenUp(Operation $op): bool
    {
        $sinceMs = intdiv(hrtime(true) - $this->startNs, 1_000_000);
        $inPart = $sinceMs >= $this->asked['begin_ms'] && $sinceMs < $this->asked['end_ms'];
        return $inPart && $op->kind === 'get' && ++$this->turn % $this->asked['every'] === 0;
    }

    private function forked(Operation $op): Operation
    {
        $call = $op->call;
        $copy = clone $op;
        $copy->call = function (mixed ...$arguments) use ($call): mixed {
            $child = pcntl_fork();
            if ($child === 0) {
                $call(...$arguments);
                posix_kill(posix_getpid(), SIGKILL); // at once: PHP would close what its parent has open
            }
            usleep(1000 * $this->asked['after_ms']);
            posix_kill($child, SIGKILL);
            pcntl_waitpid($child, $status);
            return $call(...$arguments);
        };
        return $copy;
    }
}
