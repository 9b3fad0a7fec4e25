<?php
// A record of the tape, as an operation.

declare(strict_types=1);

/** One operation, in the form that client files read, and its call. */
final class Operation
{
    // The loop reads these fields, which come first, to lie close together: the call, the answer that it has to
    // bring, where the histogram of its kind begins.
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
    /** Of what it writes; of a read that of the lane's last write of the key before it. */
    public int $generation = 0;
    public bool $counter = false;

    public function __construct(public readonly string $verb, public readonly string $kind)
    {
    }
}
