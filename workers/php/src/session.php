<?php
// What a client file has to have: a class `Client` that extends `Session`, with a method for each
// kind of operation that its library can do. The method is given an operation and says, by
// `calls`, what is called for it, which answer is the one hoped for, and who judges any other.

declare(strict_types=1);

/** What this client cannot do; the message is the reason. */
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

/** What `prepare` asks for. */
final class Setup
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

    /** Whether the ground is the one that all clients share, or the library as it comes. */
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
}

abstract class Session
{
    public const LIBRARY = '';
    /** The extension that has to be loaded, and the Debian package that brings it. */
    public const EXTENSION = '';
    public const PACKAGE = '';
    /** @var list<string> `none` for a cache in the process */
    public const WIRES = [];
    /** @var list<string> of `unix`, `cluster` */
    public const FEATURES = [];
    /** @var array<string, string> the pattern of each option's values */
    public const OPTIONS = [];
    /** The answer hoped for where there is none that is known: it equals nothing, so each is judged. */
    protected const JUDGED = NAN;

    protected readonly Judge $judge;

    public function __construct(protected readonly Setup $setup, protected readonly Tape $tape)
    {
        $this->judge = new Judge($tape);
        $this->open();
    }

    /** Connect. Raises Unreachable. */
    protected function open(): void
    {
    }

    public static function libraryVersion(): string
    {
        return phpversion(static::EXTENSION) ?: '';
    }

    /** Why the extension that is loaded cannot be used, or the empty string. */
    public static function absent(): string
    {
        return '';
    }

    /** Whether a kind of operation can be done. */
    public static function can(string $kind): bool
    {
        return method_exists(static::class, $kind);
    }

    /** Start the process again where an option can only be given at its start. @param array<string, mixed> $request */
    public static function restart(Setup $setup, array $request): void
    {
    }

    /** Why a mix of kinds cannot be done, or the empty string. */
    public static function refuse(Tape $tape, Setup $setup): string
    {
        return '';
    }

    /** A phase begins; `quiet`: with operations that ask for no reply. */
    public function begin(bool $quiet): void
    {
    }

    /** An answered command on each connection; how many were sent. Raises Unreachable. */
    public function barrier(): int
    {
        return 0;
    }

    /** What an exception of the library counts as. */
    public function failure(Throwable $error): int
    {
        return CLIENT;
    }

    /** @param list<mixed> $arguments */
    protected function calls(Operation $op, Closure $call, array $arguments, mixed $want, Closure $judge): void
    {
        [$op->call, $op->arguments, $op->want, $op->judge] = [$call, $arguments, $want, $judge];
    }
}
