<?php
// Callers that give up calls, for runs that ask for it: PROTOCOL.md, `GiveUp`. A child that is forked in the
// middle of the work uses the connections of its parent; memory_limit.php ends the script within a reply.

declare(strict_types=1);

final class GiveUp
{
    private int $turn = 0;
    private int $startNs = 0;

    /**
     * @param array{way: string, every: int, after_ms: int, begin_ms: int, end_ms: int} $asked
     * @param (Closure(): mixed)|null $tooLong the read that exceeds the memory limit, until it was made
     */
    private function __construct(private readonly array $asked, private ?Closure $tooLong)
    {
    }

    /**
     * The callers that give up, or null: a process reaches its memory limit only once.
     *
     * @param array{way: string, every: int, after_ms: int, begin_ms: int, end_ms: int}|null $asked
     */
    public static function of(?array $asked, BaseClient $session, int $place): ?self
    {
        $exhausts = $asked !== null && $asked['way'] === 'exhaust';
        if ($asked === null || $exhausts && MemoryLimit::isReached()) {
            return null;
        }
        return new self($asked, $exhausts ? MemoryLimit::read($session, $place) : null);
    }

    /**
     * A lane's script with calls that are given up.
     *
     * @param Closure(): iterable<Operation> $script
     * @return Closure(): iterable<Operation>
     */
    public function script(Closure $script, int $startNs): Closure
    {
        $this->startNs = $startNs;
        return fn () => $this->operations($script());
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
            // A child must not write: its value would be stored before the caller's call begins.
            $copy->call = fn (mixed ...$arguments): mixed => $this->hasCome() && $op->kind === 'get'
                ? $this->given($call, $arguments) : $call(...$arguments);
            yield $copy;
        }
    }

    /** Whether the caller gives up the call that begins now: each `every`-th in the part. */
    private function hasCome(): bool
    {
        $sinceMs = intdiv(hrtime(true) - $this->startNs, 1_000_000);
        $inPart = $sinceMs >= $this->asked['begin_ms'] && $sinceMs < $this->asked['end_ms'];
        return $inPart && ++$this->turn % $this->asked['every'] === 0;
    }

    /** @param list<mixed> $arguments */
    private function given(callable $call, array $arguments): mixed
    {
        if ($this->asked['way'] === 'fork') {
            return $this->forked($call, $arguments);
        }
        if ($read = $this->tooLong) {
            $this->tooLong = null;
            Fiber::suspend($read);
        }
        return $call(...$arguments);
    }

    /** @param list<mixed> $arguments */
    private function forked(callable $call, array $arguments): mixed
    {
        $child = pcntl_fork();
        if ($child === 0) {
            $call(...$arguments);
            posix_kill(posix_getpid(), SIGKILL); // at once: PHP would close its parent's connections
        }
        usleep(1000 * $this->asked['after_ms']);
        posix_kill($child, SIGKILL);
        pcntl_waitpid($child, $status);
        return $call(...$arguments);
    }
}
