<?php
// The result of a library's answer, as one number.
//
// 0 or more: the operation is done; the low 16 bits are the keys found, the next one says that the
// server refused to store, the bits above are the value bytes read or written. Negative: it failed.

declare(strict_types=1);

const WRONG = -1;
const TIMEOUT = -2;
const CONNECTION = -3;
const SERVER = -4;
const CLIENT = -5;
const PROTOCOL = -6;
const ERRORS = [
    TIMEOUT => 'timeout', CONNECTION => 'connection', SERVER => 'server', CLIENT => 'client', PROTOCOL => 'protocol',
];
const FOUND_MASK = (1 << 16) - 1;
const REFUSED = 1 << 16;
const SIZE_BIT = 17;
/** Kinds that have hits and misses. */
const LOOKS_UP = ['get', 'gets', 'mget', 'gat', 'cas', 'delete', 'touch', 'incr', 'decr'];

final class Verify
{
    public function __construct(private readonly Tape $tape)
    {
    }

    /** The result of a right operation. */
    public static function done(Operation $op): int
    {
        return $op->size << SIZE_BIT | (in_array($op->kind, LOOKS_UP, true) ? count($op->keys) : 0);
    }

    /** A value that was read, at any length that a write has. */
    public function found(string $value, Operation $op): int
    {
        return $this->right($op->numbers[0], $value, $op->generation) ? strlen($value) << SIZE_BIT | 1 : WRONG;
    }

    /** Values that were read, by key; what is not there was not found. @param array<mixed> $values */
    public function foundMany(array $values, Operation $op): int
    {
        $hits = $size = 0;
        $expected = array_flip($op->keys);
        if (array_diff_key($values, $expected)) {
            return WRONG;
        }
        foreach ($op->keys as $i => $key) {
            $value = $values[$key] ?? null;
            if ($value === null) {
                continue;
            }
            if (!is_string($value) || !$this->right($op->numbers[$i], $value, $i === 0 ? $op->generation : 0)) {
                return WRONG;
            }
            $hits++;
            $size += strlen($value);
        }
        return $size << SIZE_BIT | $hits;
    }

    public function right(int $key, string $value, int $told = 0): bool
    {
        return !$this->tape->verified || $this->tape->allows($key, $value, $told);
    }
}
