<?php
// The times of whole groups of the tape (docs/tape.md), whose operations a lane plays one after the other.

declare(strict_types=1);

final class Groups
{
    private int $place = 0;
    private int $beganNs = 0;
    /** All operations of the group so far were right and count. */
    private bool $whole = false;
    private bool $counting = true;
    private int $ok = 0;
    /** @var array<int, int> */
    private array $times;

    /** Null if groups are not timed: in an open loop the schedule would set their times. */
    public static function of(Tape $tape): ?self
    {
        return $tape->group > 1 && !$tape->openLoop ? new self($tape->group) : null;
    }

    private function __construct(private readonly int $length)
    {
        $this->times = array_fill(0, Histogram::PLACES, 0);
    }

    /** Note an operation: whether it was right, its begin and its end. */
    public function note(bool $right, int $beganNs, int $nowNs): void
    {
        if ($this->place === 0) {
            [$this->beganNs, $this->whole] = [$beganNs, $this->counting];
        }
        $this->whole = $this->whole && $right;
        if (++$this->place < $this->length) {
            return;
        }
        $this->place = 0;
        if ($this->whole) {
            $this->ok++;
            $this->times[Histogram::place($nowNs - $this->beganNs)]++;
        }
    }

    /** A part of a slice begins: a group that the last part has cut does not count. */
    public function beginPart(bool $counting): void
    {
        [$this->counting, $this->whole] = [$counting, false];
    }

    /** For the parent. @return array{length: int, ok: int, times: array<int, int>} */
    public function counts(): array
    {
        return ['length' => $this->length, 'ok' => $this->ok, 'times' => array_filter($this->times)];
    }

    /** The groups of all lanes, as they are sent. @param list<array{length: int, ok: int, times: array<int, int>}|null> $lanes @return array<string, mixed>|null */
    public static function message(array $lanes): ?array
    {
        if (!isset($lanes[0])) {
            return null;
        }
        $times = [];
        foreach (array_column($lanes, 'times') as $part) {
            foreach ($part as $place => $count) {
                $times[$place] = ($times[$place] ?? 0) + $count;
            }
        }
        $ok = array_sum(array_column($lanes, 'ok'));
        return ['length' => $lanes[0]['length'], 'ok' => $ok, 'time' => Histogram::encode($times)];
    }
}
