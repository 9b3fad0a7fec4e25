<?php
// The request `prepare`, and the refusals before the prefill.

declare(strict_types=1);

/** A task that this client cannot do; the message is the reason. */
final class Unsupported extends Exception
{
    public function __construct(string $reason, public readonly string $remedy = '')
    {
        parent::__construct($reason);
    }
}

/** The server cannot be reached. */
final class Unreachable extends Exception
{
}

/** The request `prepare`. */
final class Prepare
{
    /** @var list<string> */
    public readonly array $servers;
    public readonly string $wire;
    public readonly int $threads;
    public readonly int $connections;
    public readonly int $depth;
    public readonly int $share;
    public readonly int $shares;
    public readonly int $timeoutMs;
    /** @var array<string, string> */
    public readonly array $options;
    public readonly string $tape;

    /** @param array<string, mixed> $request */
    public function __construct(array $request)
    {
        $this->servers = $request['servers'];
        $this->wire = $request['wire'] ?? 'text';
        $this->threads = $request['threads'] ?? 1;
        $this->connections = $request['connections'] ?? 1;
        $this->depth = $request['depth'] ?? 1;
        [$this->share, $this->shares] = $request['segment'] ?? [0, 1];
        $this->timeoutMs = $request['timeout_ms'] ?? 1000;
        $this->options = $request['options'] ?? [];
        $this->tape = $request['tape'];
    }

    public function option(string $name, string $default): string
    {
        return $this->options[$name] ?? $default;
    }

    /** User and password of the option `auth`, `USER:FILE`; empty without it. @return list<string> */
    public function login(): array
    {
        [$user, $file] = explode(':', $this->option('auth', '') . ':', 2);
        return $user === '' ? [] : [$user, file(rtrim($file, ':'), FILE_IGNORE_NEW_LINES)[0]];
    }

    /** Whether the generations of the tape hold for this way to play it. */
    public function playsAsMeant(Tape $tape): bool
    {
        // An operation without a reply could be overtaken on its way.
        $inTurn = $this->depth === 1 && !isset($tape->kinds['set_noreply']);
        $inOrder = $inTurn || in_array('in_order', Client::FEATURES, true);
        return $inOrder && $this->servers && $this->connections <= $this->threads
            && $this->common() && $tape->lanes === $this->shares * $this->threads;
    }

    /** Whether to use the settings that all clients share, and not the library's own. */
    public function common(): bool
    {
        return $this->option('profile', 'common') === 'common';
    }

    /** The servers as pairs of host, or path, and port. @return list<array{string, int}> */
    public function addresses(): array
    {
        $split = static function (string $server): array {
            if (str_starts_with($server, 'unix:')) {
                return [substr($server, 5), 0];
            }
            $colon = strrpos($server, ':') ?: throw new Unreachable("$server: no host:port");
            return [trim(substr($server, 0, $colon), '[]'), (int) substr($server, $colon + 1)];
        };
        return array_map($split, $this->servers);
    }

    /** Refuse what the client cannot do, before anything is timed. Raises Unsupported. */
    public function check(string $client, Tape $tape): void
    {
        $missing = array_filter(array_keys($tape->kinds), static fn ($kind) => !Client::can($kind));
        $local = Client::WIRES === ['none'];
        $wire = $local && $this->wire === 'text' && !$this->servers ? 'none' : $this->wire;
        $refusals = [
            $missing ? 'no ' . implode(', ', $missing) : '',
            $tape->thinks ? 'no time to think between operations' : '',
            in_array($wire, Client::WIRES, true) ? '' : "no wire $wire, only " . implode(', ', Client::WIRES),
            $local && $this->servers ? 'a cache in the process takes no servers' : '',
            !$local && !$this->servers ? 'no servers are named' : '',
            count($this->servers) > 1 && !in_array('cluster', Client::FEATURES, true) ? 'one server, not several' : '',
            preg_grep('/^unix:/', $this->servers) && !in_array('unix', Client::FEATURES, true) ? 'no Unix sockets' : '',
            $this->depth > 1 ? 'one operation at a time on a connection (depth 1)' : '',
            !$local && $this->connections !== $this->threads ? 'one connection for each thread, which is a process' : '',
            Client::refuse($tape, $this),
        ];
        foreach ($this->options as $name => $value) {
            $refusals[] = self::refusedOption($name, $value);
        }
        foreach (array_filter($refusals) as $reason) {
            throw new Unsupported("$client: $reason");
        }
    }

    private static function refusedOption(string $name, string $value): string
    {
        $ofServers = Client::WIRES === ['none'] ? [] : ['reconnect_after' => '[1-9][0-9]{0,17}(?#a number from 1 on)'];
        $pattern = (Client::OPTIONS + $ofServers + ['profile' => 'common|defaults'])[$name] ?? null;
        if ($pattern === null) {
            return "no option $name";
        }
        $words = preg_match('/\(\?#(.+)\)$/', $pattern, $found) ? $found[1] : $pattern;
        return preg_match("/^(?:$pattern)$/D", $value) ? '' : "$name=$value, which is not $words";
    }
}
