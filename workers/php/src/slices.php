<?php
// Slices: the tape is played in turns with other workers. A lane goes on where its last slice ended: between
// slices it waits for its parent in the middle of its loop. All else was made at `begin_slices`.

declare(strict_types=1);

/** What a lane does with slices. */
trait SlicedLane
{
    private bool $sliced = false;
    /** What is played in lead-ins, and what after them. */
    private Recorder $leadIn;
    private Recorder $counted;
    /** @var array<string, mixed> the request of the slice that is going on */
    private array $slice;
    /** How many operations were played or left out before this part of a slice: its place on the tape. */
    private int $position = 0;
    /** @var array{int, int} played and unsent operations of its record before this part */
    private array $before;
    /** @var array{int, int, int} played and failed operations before this slice, and those of lead-ins */
    private array $beforeSlice;
    /** When the counted part began. */
    private int $fromNs = 0;
    /** The instant at which the tape stands still between slices. */
    private int $tapeNs = 0;
    /** @var array{int, int} */
    private array $cpuNs = [0, 0];
    /** @var array<string, int> */
    private array $usage;

    /** Play slice after slice, as the parent says; what they came to. @return array<string, mixed> */
    public function playSlices(): array
    {
        [$this->leadIn, $this->counted] = [$this->newRecorder(), $this->newRecorder()];
        $this->record = $this->counted;
        $this->passNs = $this->tapeNs = $this->position = 0;
        $this->cpuNs = [0, 0];
        $this->sliced = true;
        $this->parent->send(['type' => 'ready']);
        while ($this->nextSlice()) {
            if ($this->length) {
                $this->tape->openLoop ? $this->playOpenLoop($this->script(...), PHP_INT_MAX) : $this->playClosedLoop($this->script(...), PHP_INT_MAX);
                break;
            }
            $this->endSlice();
        }
        $this->sliced = false;
        foreach ([$this->leadIn, $this->counted] as $record) {
            $record->total($this->script(), $this->length);
        }
        return [
            ...$this->counted->message(), 'played' => $this->leadIn->played + $this->counted->played,
            'lead_in' => $this->leadIn->counts(), 'cpu_user_ns' => $this->cpuNs[0], 'cpu_system_ns' => $this->cpuNs[1],
        ];
    }

    private function newRecorder(): Recorder
    {
        $record = new Recorder($this->kinds, new Timeline(null), 1);
        if ($this->tape->openLoop) {
            $record->forOpenLoop();
        }
        return $record;
    }

    /**
     * What the closed loop counts in. Its arrays are its own while it plays: a second reference would have them copied.
     *
     * @return array{Recorder, array<int, int>, array<int, int>, int, int}
     */
    private function takeCounts(): array
    {
        $record = $this->record;
        $counts = [$record, $record->service, $record->busyNs, $record->played, $this->now];
        $record->service = $record->busyNs = [];
        return $counts;
    }

    /** Give back what it has counted. @param array<int, int> $service @param array<int, int> $busyNs */
    private function giveCounts(array $service, array $busyNs, int $played, int $now): void
    {
        $record = $this->record;
        [$record->service, $record->busyNs, $record->played, $this->now] = [$service, $busyNs, $played, $now];
    }

    /** This part of a slice is over: go on to the next one, or to the next slice. False if there is none, as in a run. */
    private function nextPart(): bool
    {
        if (!$this->sliced) {
            return false;
        }
        [$played, $unsent] = $this->before;
        $count = $this->record->played - $played;
        $this->record->spans[] = [$this->position % $this->length, $count];
        $this->position += $count + $this->record->unsent - $unsent;
        if ($this->record === $this->leadIn) {
            $this->fromNs = $this->now;
            $this->beginPart($this->counted, $this->lastNs);
            return true;
        }
        $this->endSlice();
        return $this->nextSlice();
    }

    /** Wait for the next slice, and begin it. */
    private function nextSlice(): bool
    {
        do {
            foreach ($this->parent->wait() ?: exit(0) as $request) {
                if ($request['type'] === 'end_slices') {
                    return false;
                }
                $slice = $request['type'] === 'slice' ? $request : null; // a stop that comes late is for no slice
            }
        } while (!isset($slice));
        $this->slice = $slice;
        $this->fromNs = $this->reportedNs = $slice['start_ns'];
        $this->lastNs = $slice['start_ns'] + $slice['length_ns'];
        $this->passNs += $slice['start_ns'] - $this->tapeNs;
        $this->stopped = false;
        $this->lookNs = 0;
        $this->beforeSlice = [$this->counted->played, $this->counted->failed, $this->leadIn->played];
        $this->session->begin($this->quiet);
        $leadInNs = $slice['lead_in_ns'];
        $this->beginPart($leadInNs ? $this->leadIn : $this->counted, $leadInNs ? $this->fromNs + $leadInNs : $this->lastNs);
        $this->usage = getrusage();
        $this->wait($slice['start_ns']);
        // Whoever has its turn after the end plays nothing.
        $this->now = hrtime(true) >= $this->lastNs ? $this->lastNs : $slice['start_ns'];
        return true;
    }

    private function beginPart(Recorder $record, int $endNs): void
    {
        $this->record = $record;
        $this->endNs = $endNs;
        $this->before = [$record->played, $record->unsent];
    }

    /** Tell the parent what a slice came to, and when its counted part began and ended, if anything was played. */
    private function endSlice(): void
    {
        [$played, $failed, $leadIn] = $this->beforeSlice;
        $record = $this->counted;
        $counted = $record->played - $played;
        $leadInOps = $this->leadIn->played - $leadIn;
        $record->endedNs = $this->now;
        if ($this->quiet && $counted + $leadInOps) {
            $this->endQuiet();
        }
        $part = [$this->fromNs, $counted ? $record->endedNs : $this->fromNs];
        if ($this->tape->openLoop) {
            $fromNs = $this->slice['start_ns'] + $this->slice['lead_in_ns'];
            $part = [$fromNs, max($fromNs, $this->lastNs)];
        }
        $this->tapeNs = max($this->slice['start_ns'], $this->lastNs); // it may be stopped before it begins
        $usage = getrusage();
        foreach (['utime', 'stime'] as $i => $which) {
            $this->cpuNs[$i] += self::cpu($usage, $which) - self::cpu($this->usage, $which);
        }
        $errors = $record->failed - $failed;
        $this->parent->send([
            'type' => 'slice_done', 'ops' => $counted - $errors, 'errors' => $errors, 'lead_in_ops' => $leadInOps,
        ] + ($counted + $leadInOps || $this->tape->openLoop ? ['from_ns' => $part[0], 'ended_ns' => $part[1]] : []));
    }
}

/** The lanes' slices, seen from the parent. */
trait SlicedPlayer
{
    /** How long all slices were, from `begin_slices` to `end_slices`; null without. */
    private ?int $slicesNs = null;

    public function hasSlices(): bool
    {
        return $this->slicesNs !== null;
    }

    /** Make everything ready that slices need. @return array<string, mixed> */
    public function beginSlices(): array
    {
        $this->endSlices();
        $this->tell(['type' => 'begin_slices']);
        $this->slicesNs = 0;
        $until = hrtime(true) + self::START_GRACE_NS;
        return $this->gather('ready', static fn () => hrtime(true) > $until)['error'] ?? ['type' => 'ready'];
    }

    /** Play a slice. @return array<string, mixed> */
    public function slice(int $lengthUs, int $leadInUs, int $startUnixNs): array
    {
        $this->sharedNs = self::startNs($startUnixNs, 0);
        $this->tell([
            'type' => 'slice', 'start_ns' => $this->sharedNs, 'length_ns' => 1000 * $lengthUs, 'lead_in_ns' => 1000 * $leadInUs,
        ]);
        $lanes = $this->gather('slice_done', $this->progress(false));
        if (isset($lanes['error'])) {
            return $lanes['error'];
        }
        $this->slicesNs += $elapsedNs = self::elapsedNs(array_column($lanes, 'from_ns'), array_column($lanes, 'ended_ns'));
        $sums = array_map(static fn ($name) => array_sum(array_column($lanes, $name)), ['ops', 'errors', 'lead_in_ops']);
        return ['type' => 'slice_done', 'ops' => $sums[0], 'errors' => $sums[1], 'lead_in_ops' => $sums[2], 'elapsed_ns' => $elapsedNs];
    }

    /**
     * The mean over the lanes that played. Where calls never wait, lanes share the CPUs: they have one time, from
     * the first beginning to the last end, because the mean would leave out when the others had the CPU.
     *
     * @param list<int> $from @param list<int> $ended
     */
    private static function elapsedNs(array $from, array $ended): int
    {
        if (!$from) {
            return 0;
        }
        return Client::WIRES === ['none'] ? max($ended) - min($from) : intdiv(array_sum($ended) - array_sum($from), count($from));
    }

    /** What all slices came to; null if there were none. @return array<string, mixed>|null */
    public function endSlices(): ?array
    {
        if ($this->slicesNs === null) {
            return null;
        }
        [$elapsedNs, $this->slicesNs] = [$this->slicesNs, null];
        $this->tell(['type' => 'end_slices']);
        $until = hrtime(true) + self::START_GRACE_NS;
        $done = $this->gather('done', static fn () => hrtime(true) > $until);
        return $done['error'] ?? [
            ...self::figures('measure', $done), 'elapsed_ns' => $elapsedNs, 'send_elapsed_ns' => $elapsedNs,
            'lead_in' => (object) self::counts(array_column($done, 'lead_in')),
        ];
    }
}
