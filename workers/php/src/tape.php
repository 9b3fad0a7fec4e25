<?php
// The tape: its tables, checked before they are trusted, and its records as operations.

declare(strict_types=1);

/** A file that is no tape; the text names the failed check and its place. */
final class TapeError extends Exception
{
}

final class Tape
{
    private const VERBS = [
        1 => 'get', 'gets', 'mget', 'set', 'add', 'replace', 'delete', 'touch', 'gat', 'version',
        'mset', 14 => 'cas', 'incr', 'decr',
    ];
    private const MAY_BE_QUIET = ['set', 'add', 'replace', 'delete', 'touch', 'mset', 'incr', 'decr'];
    /** The stored value of each counter. */
    private const COUNTER = '1000000000';
    private const WITH_GENERATION = ['set', 'get', 'gets', 'gat', 'mget'];
    /** The generations that a read may bring, by the generation in its record. */
    private const RIGHT = [[0, 1, 2, 3], [1, 2, 3], [2, 1], [3, 1]];
    private const HEADER_BYTES = 184;
    private const RECORD_BYTES = 16;
    private const OPERATION_BYTES = 1000;

    public readonly int $prefillCount;
    public readonly int $opCount;
    public readonly int $poolBytes;
    public readonly int $periodNs;
    public readonly int $group;
    public readonly bool $openLoop;
    public readonly bool $verified;
    /** The number of lanes that the generations are for; 0: there are none. */
    public readonly int $lanes;
    public bool $anyGeneration = false; // whether a read may bring any generation: a failed write may still arrive
    private bool $filled = false;
    /** Whether callers think between operations. */
    public readonly bool $thinks;
    /** @var array<string, true> the kinds of operation on the tape */
    public array $kinds = [];
    /** Whether a batch names a key twice. */
    public bool $repeats = false;
    public int $counterFrom;
    public readonly int $exptimeS;

    private string $data;
    private string $pool;
    /** The keys, one after the other: a lane that counted references to shared strings would copy their pages. */
    private string $text;
    /** @var list<int> */
    private array $offsets;
    /** @var list<int> */
    private array $lengths;
    /** @var list<int> */
    private array $runs;
    /** @var list<int> */
    private array $times;
    private int $opsAt;

    public function __construct(string $path)
    {
        $data = @file_get_contents($path);
        $this->data = $data === false ? throw new TapeError("$path: cannot be read") : $data;
        $this->check(strlen($data) >= self::HEADER_BYTES, 'no header of 184 bytes', 0);
        $this->check(str_starts_with($data, "CMTAPE\0\0"), 'no magic', 0);
        [$version, $headerBytes] = array_values(unpack('V2', $data, 8));
        $this->check($version === 2, 'another version than 2', 8);
        $this->check($headerBytes === self::HEADER_BYTES, 'a header of another length', 12);
        [
            $size, , $keyCount, $this->prefillCount, $this->opCount, $runCount, $this->poolBytes, $this->periodNs,
            $offsetsAt, $keysAt, $keyBytes, $lengthsAt, , $this->opsAt, $runsAt, $timesAt, $this->exptimeS,
            $flags, $this->group, $counterCount, $thinksAt,
        ] = array_values(unpack('P21', $data, 16));
        $this->openLoop = $timesAt !== 0;
        $this->thinks = $thinksAt !== 0;
        $this->verified = ($flags & 1) === 0;
        $this->lanes = $flags >> 32;
        $this->check($size === strlen($data), 'another length than it says', 16);
        $this->check($keyCount > 0 && $keyCount < 1 << 32, 'no possible number of keys', 32);
        $this->check($this->prefillCount >= 0 && $this->prefillCount <= $keyCount, 'more keys to store than it has', 40);
        $this->check($this->opCount > 0, 'no operations', 48);
        $this->check($this->exptimeS >= 0 && $this->exptimeS < 1 << 32, 'no possible expiry time', 144);
        $this->check(($flags & 0xFFFFFFFE) === 0 && $flags >= 0, 'unknown flags', 152);
        $this->check(($timesAt !== 0) === ($this->periodNs !== 0), 'times without a period, or a period without times', 72);
        $this->check($timesAt === 0 || $thinksAt === 0, 'both times and think times', 176);
        $this->check($this->group > 0 && $this->opCount % $this->group === 0, 'groups that are not whole', 160);
        $this->check($counterCount >= 0 && $counterCount <= $keyCount, 'more counters than keys', 168);
        $this->counterFrom = $keyCount - $counterCount;
        $this->readKeys($offsetsAt, $keysAt, $keyBytes, $keyCount);
        $this->lengths = $this->table('V', 4, 104, $keyCount);
        $this->pool = substr($data, $this->section(112, 1, $this->poolBytes), $this->poolBytes);
        $this->check(max($this->lengths) <= $this->poolBytes, 'a length beyond the pool', $lengthsAt);
        $counters = array_slice($this->lengths, $this->counterFrom);
        $this->check(!array_diff($counters, [strlen(self::COUNTER)]), 'a counter of another length', $lengthsAt);
        $this->runs = $this->table('V', 4, 128, $runCount);
        $this->check(!$this->runs || max($this->runs) < $keyCount, 'a run of unknown keys', $runsAt);
        $this->section(120, self::RECORD_BYTES, $this->opCount);
        $this->checkRecords($keyCount, $runCount);
        $this->times = $this->openLoop ? $this->table('P', 8, 136, $this->opCount) : [];
        $this->checkTimes($timesAt);
        if ($this->thinks) {
            $this->section(176, 8, $this->opCount);
        }
    }

    /** Every kind of operation that a tape can hold. @return list<string> */
    public static function kinds(): array
    {
        $quiet = array_map(static fn ($verb) => "{$verb}_noreply", self::MAY_BE_QUIET);
        return [...array_values(self::VERBS), ...$quiet];
    }

    private function check(bool $holds, string $what, int $at): void
    {
        $holds || throw new TapeError("the tape has $what (at byte $at)");
    }

    /** The begin of a section; `$field` is the place of that number in the header. */
    private function section(int $field, int $width, int $count): int
    {
        $at = unpack('P', $this->data, $field)[1];
        $room = strlen($this->data) - $at;
        $inside = $at >= self::HEADER_BYTES && $room >= 0 && $count >= 0 && $count <= intdiv($room, $width);
        $this->check($at % 8 === 0 && $inside, 'a section outside the file', $field);
        return $at;
    }

    /** @return list<int> */
    private function table(string $code, int $width, int $field, int $count): array
    {
        $at = $this->section($field, $width, $count);
        return $count ? array_values(unpack("$code$count", $this->data, $at)) : [];
    }

    private function readKeys(int $offsetsAt, int $keysAt, int $keyBytes, int $keyCount): void
    {
        $this->offsets = $offsets = $this->table('V', 4, 80, $keyCount + 1);
        $this->text = substr($this->data, $this->section(88, 1, $keyBytes), $keyBytes);
        $this->check(!preg_match('/[\x00-\x20\x7f]/', $this->text), 'a key with white space or a control character', $keysAt);
        $this->check($offsets[$keyCount] <= $keyBytes, 'a key outside its table', $offsetsAt);
        for ($k = 0; $k < $keyCount; $k++) {
            $length = $offsets[$k + 1] - $offsets[$k];
            $this->check($length > 0 && $length <= 250, 'a key of a wrong length', $offsetsAt + 4 * $k);
        }
    }

    private function key(int $k): string
    {
        return substr($this->text, $this->offsets[$k], $this->offsets[$k + 1] - $this->offsets[$k]);
    }

    /** Also collect the kinds on the tape, and whether a batch names a key twice. */
    private function checkRecords(int $keyCount, int $runCount): void
    {
        $seen = [];
        for ($j = 0; $j < $this->opCount; $j++) {
            $record = $this->record($j);
            if (isset($seen[$record])) {
                continue;
            }
            $seen[$record] = true;
            $place = $this->opsAt + self::RECORD_BYTES * $j;
            ['verb' => $verb, 'flags' => $flags, 'run' => $run, 'key' => $key, 'length' => $length] = self::fields($record);
            $this->check(isset(self::VERBS[$verb]), "an unknown verb $verb", $place);
            $name = self::VERBS[$verb];
            [$quiet, $generation] = [$flags & 1, $flags >> 1];
            $this->check(!$quiet || in_array($name, self::MAY_BE_QUIET, true), 'bad flags', $place);
            $mayHave = $this->lanes && isset(self::RIGHT[$generation]) && in_array($name, self::WITH_GENERATION, true);
            $this->check($generation === 0 || $mayHave, 'bad flags', $place);
            $batch = $name === 'mget' || $name === 'mset';
            $this->check($batch ? $run > 0 : $run === (int) ($name !== 'version'), 'a wrong run', $place);
            $inside = $name === 'version' || $key + $run <= ($batch ? $runCount : $keyCount);
            $this->check($inside, 'an unknown key', $place);
            $counts = $name === 'incr' || $name === 'decr';
            $this->check($counts || $length <= $this->poolBytes, 'a length beyond the pool', $place);
            $keys = $batch ? array_slice($this->runs, $key, $run) : ($run ? [$key] : []);
            foreach ($name === 'delete' ? [] : $keys as $k) {
                $this->check($counts === $k >= $this->counterFrom, 'counters and other keys mixed up', $place);
            }
            $this->kinds[$name . ($quiet ? '_noreply' : '')] = true;
            $this->repeats = $this->repeats || count(array_flip($keys)) < count($keys);
        }
    }

    private function checkTimes(int $at): void
    {
        $before = 0;
        foreach ($this->times as $due) {
            $this->check($due >= $before && $due < $this->periodNs, 'times out of order', $at);
            $before = $due;
        }
    }

    private function record(int $j): string
    {
        return substr($this->data, $this->opsAt + self::RECORD_BYTES * $j, self::RECORD_BYTES);
    }

    /** @return array<string, int> */
    private static function fields(string $record): array
    {
        return unpack('Cverb/Cflags/vrun/Vkey/Vlength/Vexptime', $record);
    }

    /** The value of a key at a length, in a generation; null if there can be none. */
    public function value(int $key, int $length, int $generation = 0): ?string
    {
        if ($length > $this->poolBytes) {
            return null;
        }
        $place = $key * 786433 + $length * 97 + $generation * 262147;
        return substr($this->pool, $place % ($this->poolBytes - $length + 1), $length);
    }

    /** A phase begins: a second prefill means that the first failed, and its writes may still arrive. */
    public function begins(bool $prefill): void
    {
        $this->anyGeneration = $this->anyGeneration || ($prefill && $this->filled);
        $this->filled = $this->filled || $prefill;
    }

    /** Whether a read may bring a value; `$told` is the generation in its record. */
    public function allows(int $key, string $value, int $told): bool
    {
        foreach ($this->lanes ? self::RIGHT[$this->anyGeneration ? 0 : $told] : [0] as $generation) {
            if ($value === $this->value($key, strlen($value), $generation)) {
                return true;
            }
        }
        return false;
    }

    /** The numbers of a lane's records, in order. @return Generator<int> */
    private function numbers(int $lane, int $lanes): Generator
    {
        for ($first = $lane * $this->group; $first < $this->opCount; $first += $lanes * $this->group) {
            for ($j = $first; $j < $first + $this->group; $j++) {
                yield $j;
            }
        }
    }

    /** When a lane's records are due, from the window's start on. @return list<int> */
    public function dues(int $lane, int $lanes): array
    {
        return $this->openLoop ? array_map(fn ($j) => $this->times[$j], iterator_to_array($this->numbers($lane, $lanes), false)) : [];
    }

    /** A lane's operations from the first; records that are alike are one operation. @return Generator<Operation> */
    public function lane(int $lane, int $lanes, bool $keep): Generator
    {
        $made = [];
        foreach ($this->numbers($lane, $lanes) as $j) {
            $record = $this->record($j);
            $op = $made[$record] ?? $this->operation($record);
            if ($keep) {
                $made[$record] = $op;
            }
            yield $op;
        }
    }

    public function laneLength(int $lane, int $lanes): int
    {
        return iterator_count($this->numbers($lane, $lanes));
    }

    public function prefillLength(int $lane, int $lanes): int
    {
        return max(0, intdiv($this->prefillCount - $lane + $lanes - 1, $lanes));
    }

    /** The memory of all of a lane's operations, roughly. */
    public function heldBytes(int $lane, int $lanes): int
    {
        $seen = [];
        $bytes = 0;
        foreach ($this->numbers($lane, $lanes) as $j) {
            $record = $this->record($j);
            if (!isset($seen[$record])) {
                $seen[$record] = true;
                $bytes += self::OPERATION_BYTES + $this->operation($record, false)->size;
            }
        }
        return $bytes;
    }

    /** The writes that store a lane's keys, made one by one. @return Generator<Operation> */
    public function prefill(int $lane, int $lanes, bool $whole = true): Generator
    {
        for ($k = $lane; $k < $this->prefillCount; $k += $lanes) {
            yield $this->operation(pack('CCvVVV', 4, 0, 1, $k, $this->lengths[$k], $this->exptimeS), $whole);
        }
    }

    private function operation(string $record, bool $whole = true): Operation
    {
        ['verb' => $verb, 'flags' => $flags, 'run' => $run, 'key' => $key, 'length' => $length, 'exptime' => $exptime] =
            self::fields($record);
        $name = self::VERBS[$verb];
        $op = new Operation($name, $flags & 1 ? "{$name}_noreply" : $name);
        $op->generation = $flags >> 1;
        $op->exptimeS = $exptime;
        $op->amount = $length;
        $written = $name === 'set' || $name === 'add' || $name === 'replace' || $name === 'cas';
        $valued = $written || $name === 'get' || $name === 'gets' || $name === 'gat';
        if ($name === 'mget' || $name === 'mset') {
            $op->numbers = array_slice($this->runs, $key, $run);
            $op->keys = array_map($this->key(...), $op->numbers);
            $op->keyBytes = array_sum(array_map(strlen(...), $op->keys));
            $lengths = array_map(fn ($k) => $this->lengths[$k], $op->numbers);
            $op->size = array_sum($lengths);
            $op->values = $whole ? array_map($this->stored(...), $op->numbers, $lengths) : [];
        } elseif ($run) {
            $op->numbers = [$key];
            $op->keys = [$text = $this->key($key)];
            $op->keyBytes = strlen($text);
            $op->size = $written ? $length : ($valued ? $this->lengths[$key] : 0);
            $op->values = $valued && $whole ? [$this->stored($key, $op->size, $op->generation)] : [];
            $op->counter = $key >= $this->counterFrom;
        }
        $op->key = $op->keys[0] ?? '';
        $op->value = $op->values[0] ?? '';
        return $op;
    }

    private function stored(int $key, int $length, int $generation = 0): string
    {
        return $key >= $this->counterFrom ? self::COUNTER : $this->value($key, $length, $generation);
    }
}
