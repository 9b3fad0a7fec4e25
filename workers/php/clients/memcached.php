<?php
// memcached: the extension of that name, on libmemcached. Its result codes distinguish a miss from a
// failure, except if the server answers a read with an error: the code is then NOT FOUND (the verdict
// sees this: the server counted fewer misses). Without NODELAY a binary get of a missing key takes
// 44 ms (two writes, Nagle).
//
// `noreply` is a setting of the whole client, so this file refuses a tape that has a verb with and
// without a reply. Its setMulti sets one key after the other. It has no gat, and asks for a version once.

declare(strict_types=1);

final class Client extends BaseClient
{
    public const LIBRARY = 'memcached';
    public const EXTENSION = 'memcached';
    public const PACKAGE = 'php-memcached';
    public const WIRES = ['text', 'binary'];
    public const FEATURES = ['in_order', 'unix', 'cluster', 'login_sasl'];
    public const OPTIONS = [
        'compression' => 'on|off', 'compression_threshold' => self::COUNT, 'hashing' => 'default|ketama',
        'auth' => '[^:]+:.+(?#USER:FILE)',
    ];
    private const FAILURES = [
        Memcached::RES_TIMEOUT => TIMEOUT,
        Memcached::RES_HOST_LOOKUP_FAILURE => CONNECTION,
        Memcached::RES_CONNECTION_FAILURE => CONNECTION,
        Memcached::RES_CONNECTION_BIND_FAILURE => CONNECTION,
        Memcached::RES_CONNECTION_SOCKET_CREATE_FAILURE => CONNECTION,
        Memcached::RES_WRITE_FAILURE => CONNECTION,
        Memcached::RES_READ_FAILURE => CONNECTION,
        Memcached::RES_UNKNOWN_READ_FAILURE => CONNECTION,
        Memcached::RES_NO_SERVERS => CONNECTION,
        Memcached::RES_ERRNO => CONNECTION,
        Memcached::RES_FAIL_UNIX_SOCKET => CONNECTION,
        Memcached::RES_SERVER_MARKED_DEAD => CONNECTION,
        Memcached::RES_SERVER_TEMPORARILY_DISABLED => CONNECTION,
        Memcached::RES_SERVER_ERROR => SERVER,
        Memcached::RES_SERVER_MEMORY_ALLOCATION_FAILURE => SERVER,
        Memcached::RES_E2BIG => SERVER,
        Memcached::RES_CLIENT_ERROR => CLIENT,
        Memcached::RES_BAD_KEY_PROVIDED => CLIENT,
        Memcached::RES_KEY_TOO_BIG => CLIENT,
        Memcached::RES_INVALID_ARGUMENTS => CLIENT,
        Memcached::RES_NOT_SUPPORTED => CLIENT,
        Memcached::RES_PAYLOAD_FAILURE => CLIENT,
    ];

    private Memcached $client;
    /** Whether there is a proxy, which takes no `stats`. */
    private bool $proxied = false;

    protected function open(): void
    {
        try {
            $this->connect();
            $this->barrier();
        } catch (Unreachable $error) {
            if (count($this->setup->servers) > 1) {
                throw $error;
            }
            $this->proxied = true; // twemproxy closes a connection that asks for `stats`
            $this->connect();
            $this->barrier();
        }
    }

    private function connect(): void
    {
        $setup = $this->setup;
        ini_set('memcached.compression_threshold', $setup->option('compression_threshold', '2000'));
        $this->client = new Memcached();
        $timeoutMs = $setup->timeoutMs;
        $options = !$setup->common() ? [] : [
            Memcached::OPT_COMPRESSION => false,
            Memcached::OPT_TCP_NODELAY => true,
            Memcached::OPT_CONNECT_TIMEOUT => $timeoutMs,
            Memcached::OPT_POLL_TIMEOUT => $timeoutMs,
            Memcached::OPT_SEND_TIMEOUT => $timeoutMs * 1000,
            Memcached::OPT_RECV_TIMEOUT => $timeoutMs * 1000,
        ];
        if (isset($setup->options['compression'])) {
            $options[Memcached::OPT_COMPRESSION] = $setup->options['compression'] === 'on';
        }
        if ($setup->option('hashing', 'default') === 'ketama') {
            $options[Memcached::OPT_LIBKETAMA_COMPATIBLE] = true;
        }
        if ($setup->wire === 'binary') {
            $options[Memcached::OPT_BINARY_PROTOCOL] = true;
        }
        $options === [] || $this->client->setOptions($options) || throw new Unsupported('the library refuses its options');
        if ($login = $setup->login()) {
            $this->client->setSaslAuthData(...$login);
        }
        $this->client->addServers($setup->addresses());
    }

    public static function libraryVersion(): string
    {
        ob_start();
        (new ReflectionExtension('memcached'))->info();
        preg_match('/libmemcached library version => (\S+)/', (string) ob_get_clean(), $found);
        return phpversion('memcached') . ' on libmemcached ' . ($found[1] ?? 'of an unknown version');
    }

    public static function refuse(Tape $tape, Prepare $setup): string
    {
        $loud = array_filter(
            ['set', 'mset', 'add', 'replace', 'cas', 'delete', 'touch', 'incr', 'decr'],
            static fn ($verb) => isset($tape->kinds[$verb]),
        );
        if ($loud && preg_grep('/_noreply$/', array_keys($tape->kinds))) {
            return 'no writes without a reply beside ' . implode(', ', $loud);
        }
        $quiet = preg_grep('/^(?!set|mset).*_noreply$/', array_keys($tape->kinds));
        if ($quiet && $setup->wire === 'binary') {
            return 'no ' . implode(', ', $quiet) . ' in binary: the library does not expect what a server says to a refused one';
        }
        if ($tape->repeats && (isset($tape->kinds['mset']) || isset($tape->kinds['mset_noreply']))) {
            return 'a batch of sets that names a key twice: the library takes an array by key';
        }
        return '';
    }

    public function begin(bool $quiet): void
    {
        $this->client->setOption(Memcached::OPT_NOREPLY, $quiet);
    }

    /** `stats` on each connection: it asks a server for its version once and then remembers it. */
    public function barrier(): int
    {
        $this->begin(false);
        if ($this->proxied) {
            $touched = $this->client->touch('cachemark', 0) || $this->client->getResultCode() === Memcached::RES_NOTFOUND;
            $reportedNs = $touched ? [true] : [];
        } else {
            $reportedNs = $this->client->getStats();
        }
        if (!$reportedNs) {
            throw new Unreachable(implode(', ', $this->setup->servers) . ": {$this->client->getResultMessage()}");
        }
        return count($reportedNs);
    }

    private function failed(): int
    {
        return self::FAILURES[$this->client->getResultCode()] ?? PROTOCOL;
    }

    private function missed(): int
    {
        return $this->client->getResultCode() === Memcached::RES_NOTFOUND ? 0 : $this->failed();
    }

    public function get(Operation $op): void
    {
        $verify = fn ($value) => is_string($value) ? $this->verify->found($value, $op) : $this->missed();
        $this->calls($op, $this->client->get(...), [$op->key], $op->value, $verify);
    }

    public function gets(Operation $op): void
    {
        $verify = fn ($read) => is_array($read) ? $this->verify->found((string) $read['value'], $op) : $this->missed();
        $this->calls($op, $this->client->get(...), [$op->key, null, Memcached::GET_EXTENDED], self::VERIFIED, $verify);
    }

    public function mget(Operation $op): void
    {
        $this->calls($op, $this->client->getMulti(...), [$op->keys], array_combine($op->keys, $op->values), $this->some(...));
    }

    private function some(mixed $values, Operation $op): int
    {
        $good = [Memcached::RES_SUCCESS, Memcached::RES_NOTFOUND, Memcached::RES_END];
        $whole = is_array($values) && in_array($this->client->getResultCode(), $good, true);
        if ($whole && count($values) < count($op->keys) && $this->lacksServer()) {
            return CONNECTION;
        }
        return $whole ? $this->verify->foundMany($values, $op) : $this->failed();
    }

    /** For a while, a multi-key get silently leaves out a lost server, whose keys are no misses. */
    private function lacksServer(): bool
    {
        return count($this->setup->servers) > 1 && $this->client->getLastDisconnectedServer() !== false;
    }

    /** @param list<mixed> $arguments */
    private function write(Operation $op, Closure $call, array $arguments): void
    {
        $this->calls($op, $call, $arguments, true, $this->failed(...));
    }

    public function set(Operation $op): void
    {
        $this->write($op, $this->client->set(...), [$op->key, $op->value, $op->exptimeS]);
    }

    public function mset(Operation $op): void
    {
        $this->write($op, $this->client->setMulti(...), [array_combine($op->keys, $op->values), $op->exptimeS]);
    }

    /** @param list<mixed> $arguments */
    private function refusable(Operation $op, Closure $call, array $arguments): void
    {
        $refused = [Memcached::RES_NOTSTORED, Memcached::RES_DATA_EXISTS, Memcached::RES_NOTFOUND];
        $verify = fn () => in_array($this->client->getResultCode(), $refused, true) ? Verify::done($op) | REFUSED : $this->failed();
        $this->calls($op, $call, $arguments, true, $verify);
    }

    public function add(Operation $op): void
    {
        $this->refusable($op, $this->client->add(...), [$op->key, $op->value, $op->exptimeS]);
    }

    public function replace(Operation $op): void
    {
        $this->refusable($op, $this->client->replace(...), [$op->key, $op->value, $op->exptimeS]);
    }

    /** @param list<mixed> $arguments */
    private function known(Operation $op, Closure $call, array $arguments): void
    {
        $this->calls($op, $call, $arguments, true, $this->missed(...));
    }

    public function delete(Operation $op): void
    {
        $this->known($op, $this->client->delete(...), [$op->key]);
    }

    public function touch(Operation $op): void
    {
        $this->known($op, $this->client->touch(...), [$op->key, $op->exptimeS]);
    }

    /** The value is verified between the two round trips, at the place where a program uses it. */
    public function cas(Operation $op): void
    {
        $swap = function () use ($op): int {
            $found = $this->client->get($op->key, null, Memcached::GET_EXTENDED);
            if (!is_array($found)) {
                return $this->missed();
            }
            $right = $this->verify->right($op->numbers[0], (string) $found['value']);
            $stored = $this->client->cas($found['cas'], $op->key, $op->value, $op->exptimeS);
            return match (true) {
                !$right => WRONG,
                $stored => Verify::done($op),
                $this->client->getResultCode() === Memcached::RES_DATA_EXISTS => Verify::done($op) | REFUSED,
                default => $this->missed() ?: Verify::done($op) | REFUSED,
            };
        };
        $this->calls($op, $swap, [], Verify::done($op), static fn (int $code) => $code);
    }

    private function step(Operation $op, Closure $call): void
    {
        $verify = fn ($number) => is_int($number) ? Verify::done($op) : $this->missed();
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

    // Without a reply, only a failure to send can be verified.

    public function set_noreply(Operation $op): void
    {
        $this->quiet($op, $this->client->set(...), [$op->key, $op->value, $op->exptimeS]);
    }

    public function mset_noreply(Operation $op): void
    {
        $this->quiet($op, $this->client->setMulti(...), [array_combine($op->keys, $op->values), $op->exptimeS]);
    }

    public function add_noreply(Operation $op): void
    {
        $this->quiet($op, $this->client->add(...), [$op->key, $op->value, $op->exptimeS]);
    }

    public function replace_noreply(Operation $op): void
    {
        $this->quiet($op, $this->client->replace(...), [$op->key, $op->value, $op->exptimeS]);
    }

    public function delete_noreply(Operation $op): void
    {
        $this->quiet($op, $this->client->delete(...), [$op->key]);
    }

    public function incr_noreply(Operation $op): void
    {
        $this->quiet($op, $this->client->increment(...), [$op->key, $op->amount]);
    }

    public function decr_noreply(Operation $op): void
    {
        $this->quiet($op, $this->client->decrement(...), [$op->key, $op->amount]);
    }

    /** @param list<mixed> $arguments */
    private function quiet(Operation $op, Closure $call, array $arguments): void
    {
        $sent = [Memcached::RES_SUCCESS, Memcached::RES_BUFFERED];
        $verify = fn () => in_array($this->client->getResultCode(), $sent, true) ? Verify::done($op) : $this->failed();
        $this->calls($op, $call, $arguments, true, $verify);
    }
}
