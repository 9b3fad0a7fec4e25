<?php
// The base of every client file: its class `Client` extends `BaseClient`. README.md says what it must
// contain.

declare(strict_types=1);

abstract class BaseClient
{
    public const LIBRARY = '';
    /** The extension, and the Debian package that has it. */
    public const EXTENSION = '';
    public const PACKAGE = '';
    /** The remedy if `absent` has a reason. */
    public const REMEDY = '';
    /** @var list<string> `none` for a cache in the process */
    public const WIRES = [];
    /** @var list<string> of `unix`, `cluster` */
    public const FEATURES = [];
    /** @var array<string, string> the pattern of each option's values; a comment in it has it in words */
    public const OPTIONS = [];
    protected const COUNT = '[1-9][0-9]*(?#a whole number above 0)';
    protected const BYTES = '[1-9][0-9]*[KMGkmg]?(?#a size such as 512m)';
    /** The expected answer if it is unknown: it equals nothing, so each answer is verified. */
    protected const VERIFIED = NAN;

    protected readonly Verify $verify;

    public function __construct(protected readonly Prepare $setup, protected readonly Tape $tape)
    {
        $this->verify = new Verify($tape);
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

    /** Why the loaded extension cannot be used, or the empty string. */
    public static function absent(): string
    {
        return '';
    }

    /** Whether the client supports a kind of operation. */
    public static function can(string $kind): bool
    {
        return method_exists(static::class, $kind);
    }

    /** Start the process again where an option can only be given at its start. @param array<string, mixed> $request */
    public static function restart(Prepare $setup, array $request): void
    {
    }

    /** The memory of a cache in the process now, by its own account; null without a cache or an account. */
    public static function storeBytes(): ?int
    {
        return null;
    }

    /** Why a mix of kinds cannot be done, or the empty string. */
    public static function refuse(Tape $tape, Prepare $setup): string
    {
        return '';
    }

    /** A phase begins; `quiet`: with operations without a reply. */
    public function begin(bool $quiet): void
    {
    }

    /** Send a command with a reply on each connection; their number. Raises Unreachable. */
    public function barrier(): int
    {
        return 0;
    }

    /** The fault kind of an exception of the library. */
    public function failure(Throwable $error): int
    {
        return CLIENT;
    }

    /** @param list<mixed> $arguments */
    protected function calls(Operation $op, Closure $call, array $arguments, mixed $expected, Closure $verify): void
    {
        [$op->call, $op->arguments, $op->expected, $op->verify] = [$call, $arguments, $expected, $verify];
    }
}

/**
 * Whether an error is a mistake in this worker's own code, such as a client file. The libraries are
 * extensions: they throw exceptions, and a ValueError for a value that they refuse.
 */
function isOwnError(mixed $thrown): bool
{
    return $thrown instanceof Error && !$thrown instanceof ValueError;
}

/** The exception in one line, with its place. */
function describe(Throwable $thrown): string
{
    return $thrown::class . ": {$thrown->getMessage()} (" . basename($thrown->getFile()) . ":{$thrown->getLine()})";
}
