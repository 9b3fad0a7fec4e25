<?php
// The timeline of a window: the operations that ended in each of a thousand slices; a hundred are a section. Where a
// slice has ended the lane notes its operations by then, so an operation costs a comparison.

declare(strict_types=1);

final class Timeline
{
    public const SECTIONS = 10;
    private const SECTION_SLICES = 100;
    private const SLICES = self::SECTIONS * self::SECTION_SLICES;
    /** Operations that end after a late open loop's window have slices too; the last has the rest. */
    private const MOST_SLICES = 4 * self::SLICES;
    /** Histograms take half a MB each: beyond this number of lanes and kinds there are no sections. */
    public const MOST_SECTIONED = 64;

    /** 0: the window ends by a number of operations and has no slices. */
    public readonly int $sliceNs;
    /** The end of the current slice. */
    public int $endNs = PHP_INT_MAX;
    public int $section = 0;
    private int $startNs = 0;
    private int $at = 0;
    private int $done = 0;
    private int $tookNs = 0;
    /** @var list<int> */
    private array $ok;
    /** @var list<int> */
    private array $responseNs;

    public function __construct(?int $durationMs)
    {
        $this->sliceNs = intdiv(($durationMs ?? 0) * 1_000_000, self::SLICES);
        $this->ok = array_fill(0, self::MOST_SLICES, 0);
        $this->responseNs = array_fill(0, self::MOST_SLICES, 0);
    }

    public function start(int $startNs): void
    {
        $this->startNs = $startNs;
        $this->endNs = $this->sliceNs ? $startNs + $this->sliceNs : PHP_INT_MAX;
    }

    /** End a slice, with the operations so far and the sum of their response times. */
    public function close(int $done, int $tookNs): void
    {
        $this->ok[$this->at] += $done - $this->done;
        $this->responseNs[$this->at] += $tookNs - $this->tookNs;
        [$this->done, $this->tookNs] = [$done, $tookNs];
    }

    /** Go on to the slice of an instant. */
    public function advance(int $now): void
    {
        $this->at = min(intdiv($now - $this->startNs, $this->sliceNs), self::MOST_SLICES - 1);
        $last = $this->at === self::MOST_SLICES - 1;
        $this->endNs = $last ? PHP_INT_MAX : $this->startNs + ($this->at + 1) * $this->sliceNs;
        $this->section = self::section($this->at);
    }

    private static function section(int $slice): int
    {
        return min(intdiv($slice, self::SECTION_SLICES), self::SECTIONS - 1);
    }

    /** As the parent process gets it; null without slices. @return array<string, mixed>|null */
    public function message(): ?array
    {
        $used = $this->at + 1;
        return $this->sliceNs === 0 ? null : [
            'slice_ns' => $this->sliceNs, 'ok' => array_slice($this->ok, 0, $used),
            'response_ns' => array_slice($this->responseNs, 0, $used),
        ];
    }

    /** The timelines of all lanes as one, or null. @param list<array<string, mixed>> $timelines @return array<string, mixed>|null */
    public static function merge(array $timelines): ?array
    {
        $sum = array_shift($timelines);
        if ($sum === null) {
            return null;
        }
        foreach ($timelines as $timeline) {
            foreach (['ok', 'response_ns'] as $name) {
                foreach ($timeline[$name] as $slice => $value) {
                    $sum[$name][$slice] = ($sum[$name][$slice] ?? 0) + $value;
                }
            }
        }
        return $sum;
    }

    /** The sections that a timeline consists of. @param array<string, mixed> $timeline @param list<string|null> $histograms @return array<string, mixed> */
    public static function sections(array $timeline, array $histograms): array
    {
        $ok = array_fill(0, self::SECTIONS, 0);
        foreach ($timeline['ok'] as $slice => $count) {
            $ok[self::section($slice)] += $count;
        }
        return ['length_ns' => $timeline['slice_ns'] * self::SECTION_SLICES, 'ok' => $ok, 'response' => $histograms];
    }
}
