<?php
// A record of the tape, as an operation.

declare(strict_types=1);

/** One operation, for client files, and its call. */
final class Operation
{
    // The loop reads these fields, which come first to lie close together: the call, the right answer, the
    // place of its kind's histogram.
    public ?Closure $call = null;
    /** @var list<mixed> */
    public array $arguments = [];
    public mixed $expected = null;
    public int $base = 0;

    public ?Closure $verify = null;
    /** @var list<int> the keys' numbers */
    public array $numbers = [];
    /** @var list<string> */
    public array $keys = [];
    /** @var list<string> what is written, or what a read has to bring */
    public array $values = [];
    public string $key = '';
    public string $value = '';
    public int $size = 0;
    public int $keyBytes = 0;
    public int $exptimeS = 0;
    public int $amount = 0;
    /** The generation that it writes, or for a read of the lane's last write of the key before it. */
    public int $generation = 0;
    public bool $counter = false;

    public function __construct(public readonly string $verb, public readonly string $kind)
    {
    }
}
