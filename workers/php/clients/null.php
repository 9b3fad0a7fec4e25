<?php
// null: no library. It measures the loop's own cost. It remembers nothing:
// what the prefill stores is there, and nothing else.

declare(strict_types=1);

final class Client extends BaseClient
{
    public const LIBRARY = 'none';
    public const EXTENSION = 'pcntl';
    public const PACKAGE = 'php-cli';
    public const WIRES = ['none'];

    public static function can(string $kind): bool
    {
        return true;
    }

    /** Every kind: the result of an operation is known before it is played. */
    public function __call(string $kind, array $arguments): void
    {
        [$op] = $arguments;
        $there = array_filter($op->numbers, fn ($number) => $number < $this->tape->prefillCount);
        $all = count($there) === count($op->numbers);
        $values = array_intersect_key($op->values, $there);
        $code = match (true) {
            $kind === 'add' => Verify::done($op) | ($all ? REFUSED : 0),
            $kind === 'replace' => Verify::done($op) | ($all ? 0 : REFUSED),
            $all || !in_array($kind, LOOKS_UP, true) => Verify::done($op),
            $kind === 'cas' => 0,
            default => array_sum(array_map(strlen(...), $values)) << SIZE_BIT | count($there),
        };
        $answer = $kind === 'mget' ? $values : ($op->value ?: true);
        $expected = $code === Verify::done($op) ? $answer : self::VERIFIED;
        $this->calls($op, static fn ($answer) => $answer, [$answer], $expected, static fn () => $code);
    }
}
