<?php
// The records of a lane in the window, and their sums afterwards.
//
// A right operation records only its time: how often each was played
// is known from how far the lane came. Only others are noted one by one (`other`).

declare(strict_types=1);

final class Recorder
{
    public const FIGURES = [
        'attempts', 'ok', 'hits', 'misses', 'not_stored', 'wrong_values', 'keys', 'value_bytes', 'key_bytes', 'busy_ns',
    ];

    /** Service times of all kinds, one histogram after the other: counts by place. @var list<int> */
    public array $service;
    /** Open loop: response times in the same way, and the lag of all kinds. @var array<int, int> */
    public array $response = [];
    /** @var array<int, int> */
    public array $lag = [];
    /** Time in the library's calls of the operations that are done, by where their histogram begins. @var array<int, int> */
    public array $busyNs = [];
    public int $played = 0;
    public int $failed = 0;
    public int $queued = 0;
    public int $unsent = 0;
    public int $barriers = 0;
    public int $sentNs = 0;
    public int $endedNs = 0;
    /** In slices: where operations that were played began among the lane's, and how many there were. @var list<array{int, int}> */
    public array $spans = [];

    /** The response times of sections that are over; in a closed loop they are service times. @var list<array<int, int>> */
    private array $past = [];
    /** Room for those that are to come, made before the window. @var list<array<int, int>> */
    private array $rooms = [];

    /** @var array<string, array<string, int>> */
    private array $sums = [];
    /** @var array<string, array<string, int>> */
    private array $errors = [];

    /** @param array<string, int> $kinds the number of each kind @param int $sections how many parts of the window have histograms of their own */
    public function __construct(private readonly array $kinds, public readonly Timeline $timeline, int $sections)
    {
        $this->service = array_fill(0, count($kinds) * Histogram::PLACES, 0);
        while (count($this->rooms) < $sections - 1) {
            $this->rooms[] = array_fill(0, count($kinds) * Histogram::PLACES, 0);
        }
        foreach ($kinds as $number) {
            $this->busyNs[$number * Histogram::PLACES] = 0;
        }
    }

    /** Allocate separate response times, and the lag. */
    public function forOpenLoop(): void
    {
        $this->response = array_fill(0, count($this->service), 0);
        $this->lag = array_fill(0, Histogram::PLACES, 0);
    }

    /** A slice has ended: empty room for the next one's response times, or those given where its section goes on. @param array<int, int> $times @return array<int, int> */
    public function nextSlice(int $now, array $times): array
    {
        $section = $this->timeline->section;
        $this->timeline->advance($now);
        for (; $section < $this->timeline->section && $this->rooms; $section++) {
            $this->past[] = $times;
            $times = array_pop($this->rooms);
        }
        return $times;
    }

    /** Record an operation without the expected answer: subtract what a right one would have counted. */
    public function other(Operation $op, int $code): void
    {
        $this->add($op, Verify::done($op), -1);
        if ($code >= 0) {
            $this->add($op, $code, 1);
            return;
        }
        $this->failed++;
        $this->sums[$op->kind]['attempts']++;
        if ($code === WRONG) {
            $this->sums[$op->kind]['wrong_values']++;
        } else {
            $this->errors[$op->kind][ERRORS[$code]] = ($this->errors[$op->kind][ERRORS[$code]] ?? 0) + 1;
        }
    }

    /** Count an operation `times` times. */
    public function add(Operation $op, int $code, int $times): void
    {
        $sum = &$this->sums[$op->kind];
        $sum ??= array_fill_keys(self::FIGURES, 0);
        $found = $code & FOUND_MASK;
        $keys = count($op->keys);
        $sum['attempts'] += $times;
        $sum['ok'] += $times;
        $sum['keys'] += $times * $keys;
        $sum['key_bytes'] += $times * $op->keyBytes;
        $sum['value_bytes'] += $times * ($code >> SIZE_BIT);
        $sum['not_stored'] += $times * ($code & REFUSED ? 1 : 0);
        if (in_array($op->kind, LOOKS_UP, true)) {
            $sum['hits'] += $times * $found;
            $sum['misses'] += $times * ($keys - $found);
        }
    }

    /** Count what was played: `$operations` are the lane's from the first one on. @param iterable<Operation> $operations */
    public function total(iterable $operations, int $length): void
    {
        [$passes, $changes] = self::passes($this->spans ?: [[0, $this->played]], $length);
        $last = max([0, ...array_keys($changes)]);
        $turn = 0;
        foreach ($operations as $op) {
            if ($passes === 0 && $turn >= $last) {
                break;
            }
            $passes += $changes[$turn++] ?? 0;
            if ($passes > 0) {
                $this->add($op, Verify::done($op), $passes);
            }
        }
    }

    /**
     * How often the first of `length` operations was played but for the changes, and at which of them that changes.
     *
     * @param list<array{int, int}> $spans @return array{int, array<int, int>}
     */
    private static function passes(array $spans, int $length): array
    {
        $passes = 0;
        $changes = [];
        foreach ($spans as [$first, $count]) {
            if ($count === 0) {
                continue;
            }
            $passes += intdiv($count, $length);
            $rest = $first + $count % $length;
            $ends = $rest > $length ? [[$first, $length], [0, $rest - $length]] : [[$first, $rest]];
            foreach ($ends as [$from, $to]) {
                $changes[$from] = ($changes[$from] ?? 0) + 1;
                $changes[$to] = ($changes[$to] ?? 0) - 1;
            }
        }
        return [$passes, $changes];
    }

    /** Figures and errors by kind. @return array<string, array<string, mixed>> */
    public function counts(): array
    {
        $counts = [];
        foreach ($this->sums as $kind => $sum) {
            $counts[$kind] = [
                'figures' => ['busy_ns' => $this->busyNs[$this->kinds[$kind] * Histogram::PLACES]] + $sum,
                'errors' => $this->errors[$kind] ?? [],
            ];
        }
        return $counts;
    }

    /** As the parent process gets it. @return array<string, mixed> */
    public function message(): array
    {
        $operations = [];
        $open = $this->response !== [];
        $last = $open ? $this->response : $this->service;
        $parts = [...$this->past, $last, ...$this->rooms];
        foreach ($this->counts() as $kind => $counts) {
            $number = $this->kinds[$kind];
            $responses = self::whole($parts, [$number]);
            $operations[$kind] = $counts + [
                'service' => $open ? self::counted($this->service, $number) : $responses,
                'response' => $open ? $responses : [],
            ];
        }
        return [
            'operations' => $operations, 'lag' => self::counted($this->lag, 0), 'played' => $this->played,
            'queued' => $this->queued, 'unsent' => $this->unsent, 'barriers' => $this->barriers,
            'sent_ns' => $this->sentNs, 'ended_ns' => $this->endedNs, 'timeline' => $this->timeline->message(),
            'sections' => count($parts) === 1 ? null : array_map(fn ($part) => self::whole([$part], $this->kinds), $parts),
        ];
    }

    /** The counts of several parts and kinds together, by place. @param list<array<int, int>> $parts @param array<int> $numbers @return array<int, int> */
    private static function whole(array $parts, array $numbers): array
    {
        $sum = [];
        foreach ($parts as $part) {
            foreach ($numbers as $number) {
                foreach (self::counted($part, $number) as $place => $count) {
                    $sum[$place] = ($sum[$place] ?? 0) + $count;
                }
            }
        }
        return $sum;
    }

    /** The counts of one kind that are not zero, by place. @param array<int, int> $counts @return array<int, int> */
    private static function counted(array $counts, int $number): array
    {
        return array_filter(array_slice($counts, $number * Histogram::PLACES, Histogram::PLACES));
    }
}
