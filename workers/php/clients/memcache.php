<?php
// memcache: the extension of that name, text protocol. It returns false for a miss and for a failure
// alike; a failure also calls back (`setFailureCallback`), with the server's or the socket's message. It
// cannot set TCP_NODELAY, and leaves a failed server alone for `retry_interval`, 15 s.

declare(strict_types=1);

final class Client extends BaseClient
{
    public const LIBRARY = 'memcache';
    public const EXTENSION = 'memcache';
    public const PACKAGE = 'php-memcache';
    public const WIRES = ['text'];
    public const FEATURES = ['unix', 'cluster'];
    public const OPTIONS = ['hashing' => 'default'];
    private const FAILURES = [
        '/timed out|timeout/i' => TIMEOUT,
        '/SERVER_ERROR|out of memory/i' => SERVER,
        '/CLIENT_ERROR|too large|illegal|invalid/i' => CLIENT,
        '/malformed|unexpected|ERROR/i' => PROTOCOL,
    ];

    private MemcachePool $client;
    /** The library's log of a failure since the last operation was verified. */
    private string $logged = '';
    /** The flags of the last read's items: one number, or one for each key. */
    private mixed $flags = 0;

    protected function open(): void
    {
        $setup = $this->setup;
        ini_set('memcache.protocol', 'ascii');
        set_error_handler($this->logMessage(...));
        $this->client = new MemcachePool();
        foreach ($setup->addresses() as $i => [$host, $port]) {
            $host = $port ? $host : "unix://$host";
            $setup->common()
                ? $this->client->addServer($host, $port, 0, false, 1, $setup->timeoutMs / 1000)
                : $this->client->addServer($host, $port, 0, false);
        }
        if ($setup->common()) {
            $this->client->setCompressThreshold(0);
        }
        $this->client->setFailureCallback($this->failed(...));
        $this->checkConnection();
    }

    private function failed(string $host, int $port, int $udp, ?string $text, ?int $number): void
    {
        $this->logged .= ' ' . ($text ?: "failed ($number)");
    }

    private function logMessage(int $level, string $text): bool
    {
        $this->logged .= $level === E_DEPRECATED ? '' : " $text";
        return true;
    }

    /** Connect to each server. It has no operation without a reply, so there is nothing else to end. */
    private function checkConnection(): void
    {
        $silent = array_keys($this->client->getExtendedStats() ?: array_fill_keys($this->setup->servers, false), false, true);
        if ($silent) {
            throw new Unreachable(implode(', ', $silent) . ": {$this->logged}");
        }
        $this->logged = '';
    }

    /** The result of an answer false: a failure, or the given meaning if there was none. */
    private function unlessFailed(int $meaning): int
    {
        $logged = $this->logged;
        $this->logged = '';
        foreach ($logged === '' ? [] : self::FAILURES as $pattern => $failure) {
            if (preg_match($pattern, $logged)) {
                return $failure;
            }
        }
        return $logged !== '' || $this->down() ? CONNECTION : $meaning;
    }

    /** Whether a server is left alone after a failure: every answer of the library is false then. */
    private function down(): bool
    {
        $up = fn ($server) => $this->client->getServerStatus($server[1] ? $server[0] : "unix://{$server[0]}", $server[1]) !== 0;
        return count(array_filter($this->setup->addresses(), $up)) < count($this->setup->servers);
    }

    public static function refuse(Tape $tape, Prepare $setup): string
    {
        $twice = $tape->repeats && isset($tape->kinds['mset']);
        return $twice ? 'a batch of sets that names a key twice: the library takes an array by key' : '';
    }

    /** The result of a read of one key. All items of cachemark have flags 0. */
    private function found(mixed $value, Operation $op): int
    {
        if (!is_string($value)) {
            return $this->unlessFailed(0);
        }
        return $this->flags === 0 ? $this->verify->found($value, $op) : WRONG;
    }

    public function get(Operation $op): void
    {
        $this->calls($op, $this->client->get(...), [$op->key, &$this->flags], self::VERIFIED, fn ($value) => $this->found($value, $op));
    }

    public function gets(Operation $op): void
    {
        $get = function (string $key): mixed {
            $cas = 0;
            return $this->client->get($key, $this->flags, $cas);
        };
        $this->calls($op, $get, [$op->key], self::VERIFIED, fn ($value) => $this->found($value, $op));
    }

    public function mget(Operation $op): void
    {
        $verify = function ($values) use ($op): int {
            $failure = $this->unlessFailed(0);
            if ($failure < 0) {
                return $failure;
            }
            return $values && array_filter((array) $this->flags) ? WRONG : $this->verify->foundMany($values ?: [], $op);
        };
        $this->calls($op, $this->client->get(...), [$op->keys, &$this->flags], self::VERIFIED, $verify);
    }

    /** @param list<mixed> $arguments */
    private function write(Operation $op, Closure $call, array $arguments, int $refused): void
    {
        $this->calls($op, $call, $arguments, true, fn () => $this->unlessFailed($refused));
    }

    public function set(Operation $op): void
    {
        $this->write($op, $this->client->set(...), [$op->key, $op->value, 0, $op->exptimeS], SERVER);
    }

    public function mset(Operation $op): void
    {
        $this->write($op, $this->client->set(...), [array_combine($op->keys, $op->values), null, 0, $op->exptimeS], SERVER);
    }

    public function add(Operation $op): void
    {
        $this->write($op, $this->client->add(...), [$op->key, $op->value, 0, $op->exptimeS], Verify::done($op) | REFUSED);
    }

    public function replace(Operation $op): void
    {
        $this->write($op, $this->client->replace(...), [$op->key, $op->value, 0, $op->exptimeS], Verify::done($op) | REFUSED);
    }

    public function delete(Operation $op): void
    {
        $this->write($op, $this->client->delete(...), [$op->key], 0);
    }

    /** The value is verified between the two round trips, at the place where a program uses it. */
    public function cas(Operation $op): void
    {
        $swap = function () use ($op): int {
            [$flags, $cas] = [0, 0];
            $value = $this->client->get($op->key, $flags, $cas);
            if (!is_string($value)) {
                return $this->unlessFailed(0);
            }
            $right = $flags === 0 && $this->verify->right($op->numbers[0], $value);
            $stored = $this->client->cas($op->key, $op->value, 0, $op->exptimeS, $cas);
            return match (true) {
                !$right => WRONG,
                $stored => Verify::done($op),
                default => $this->unlessFailed(Verify::done($op) | REFUSED),
            };
        };
        $this->calls($op, $swap, [], Verify::done($op), static fn (int $code) => $code);
    }

    private function step(Operation $op, Closure $call): void
    {
        $verify = fn ($number) => is_int($number) ? Verify::done($op) : $this->unlessFailed(0);
        $this->calls($op, $call, [$op->key, $op->amount], self::VERIFIED, $verify);
    }

    public function incr(Operation $op): void
    {
        $this->step($op, $this->client->increment(...));
    }

    public function decr(Operation $op): void
    {
        $this->step($op, $this->client->decrement(...));
    }

    public function version(Operation $op): void
    {
        $verify = fn ($version) => is_string($version) ? Verify::done($op) : $this->unlessFailed(PROTOCOL);
        $this->calls($op, $this->client->getVersion(...), [], self::VERIFIED, $verify);
    }
}
