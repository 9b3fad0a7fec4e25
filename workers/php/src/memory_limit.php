<?php
// A caller that reaches PHP's memory limit within a reply. PHP ends the script there, without unwinding it, and
// then calls the shutdown functions, as it does for session handlers: they use the connections in the state of
// the interrupted call. So the lane plays in a fiber, and makes the call outside of it: the fiber survives, and
// a shutdown function resumes it. An end within a shutdown function is final, so a process can do this once.

declare(strict_types=1);

final class MemoryLimit
{
    /** A value that memcached takes (1 MiB with its header), of which two fill a chunk of PHP's allocator (2 MiB). */
    private const VALUE_BYTES = 1_040_000;

    /** @var list<string> takes the memory that is left below the limit */
    private static array $ballast = [];
    private static bool $isReached = false;

    /** Whether this process has had its end. */
    public static function isReached(): bool
    {
        return self::$isReached;
    }

    /**
     * A read to suspend the fiber with, whose reply does not fit below the limit. This stores its value.
     *
     * @return Closure(): mixed
     */
    public static function read(BaseClient $session, int $place): Closure
    {
        [$set, $get] = [new Operation('set', 'set'), new Operation('get', 'get')];
        $set->key = $get->key = "cachemark-memory-limit-$place";
        // Random: a library that compresses values keeps its length.
        $set->value = random_bytes(self::VALUE_BYTES);
        $session->set($set);
        $session->get($get);
        if (($set->call)(...$set->arguments) !== $set->expected) {
            throw new RuntimeException('the value that is to exceed the memory limit was not stored');
        }
        return static fn (): mixed => ($get->call)(...$get->arguments);
    }

    /** Run `$live`. It may once suspend its fiber with a read of `read`, and goes on after the end of the script. */
    public static function survive(Closure $live): void
    {
        $fiber = new Fiber($live);
        $read = $fiber->start();
        if ($fiber->isTerminated()) {
            return;
        }
        $limit = (string) ini_get('memory_limit');
        register_shutdown_function(static function () use ($fiber, $limit): void {
            if (!$fiber->isTerminated() && str_starts_with(error_get_last()['message'] ?? '', 'Allowed memory size')) {
                [self::$ballast, self::$isReached] = [[], true];
                ini_set('memory_limit', $limit);
                $fiber->resume();
            }
        });
        self::fill();
        ini_set('memory_limit', (string) memory_get_usage(true));
        try {
            $read();
        } finally { // does not run at the end of the script, which PHP does not unwind
            self::$ballast = [];
            ini_set('memory_limit', $limit);
        }
        $fiber->throw(new RuntimeException('a read ended below the memory limit'));
    }

    /** Fill the memory that PHP has from the system, so that no value fits. */
    private static function fill(): void
    {
        $before = memory_get_usage(true);
        do {
            self::$ballast[] = str_repeat('x', self::VALUE_BYTES);
        } while (memory_get_usage(true) === $before);
        // The other half of the new chunk.
        self::$ballast[] = str_repeat('x', self::VALUE_BYTES);
    }
}
