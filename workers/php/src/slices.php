<?php
// Slices: short parts of the tape, in turns with other workers. A lane goes on where its last slice ended: between
// slices it waits for its parent in the middle of its loop. All else was made at `begin_slices`.

declare(strict_types=1);

/** A lane that plays slices. */
trait SlicedLane
{
    private bool $sliced = false;
    /** The operations of lead-ins, and of counted parts. */
    private Recorder $leadIn;
    private Recorder $counted;
    /** @var array<string, mixed> the request of the slice that is going on */
    private array $slice;
    /** The number of operations before this part of a slice: its place on the tape. */
    private int $position = 0;
    /** @var array{int, int} played and unsent operations of its record before this part */
    private array $before;
    /** @var array{int, int, int} played and failed operations before this slice, and operations of lead-ins */
    private array $beforeSlice;
    /** When the counted part began. */
    private int $fromNs = 0;
    /** @var array{int, int}|null the first half of the counted part: when it ended, and its operations */
    private ?array $half;
    /** The instant at which the tape stands still between slices. */
    private int $tapeNs = 0;
    /** @var array{int, int} */
    private array $cpuNs = [0, 0];
    /** @var array<string, int> */
    private array $usage;

    /** Play slice after slice, as the parent says; return their results. @return array<string, mixed> */
    public function playSlices(): array
    {
        [$this->leadIn, $this->counted] = [$this->newRecorder(), $this->newRecorder()];
        $this->record = $this->counted;
        $this->groups = Groups::of($this->tape);
        $this->passNs = $this->tapeNs = $this->position = $this->renewed = 0;
        $this->cpuNs = [0, 0];
        $this->sliced = true;
        $this->calls = null;
        $this->parent->send(['type' => 'ready']);
        while ($this->nextSlice()) {
            if ($this->length) {
                $this->tape->openLoop ? $this->playOpenLoop($this->played(...), PHP_INT_MAX) : $this->playClosedLoop($this->played(...), PHP_INT_MAX);
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
            'groups' => $this->groups?->counts(), 'renewed' => $this->renewed,
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
     * The closed loop owns its arrays of counts while it plays: PHP would copy them for a second reference.
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
        if ($this->record === $this->counted && $this->half === null && !$this->tape->openLoop && $this->endNs < $this->lastNs) {
            $this->half = [$this->now, $this->record->played - $played];
            [$this->endNs, $this->lookNs] = [$this->lastNs, 0];
            return true;
        }
        $count = $this->record->played - $played;
        $this->record->spans[] = [$this->position % $this->length, $count];
        $this->position += $count + $this->record->unsent - $unsent;
        if ($this->record === $this->leadIn) {
            // A call without a server waits for a CPU only.
            $this->fromNs = Client::WIRES === ['none'] ? $this->countedFromNs() : $this->now;
            $this->beginCounting();
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
                $slice = $request['type'] === 'slice' ? $request : null; // a late stop is for no slice
            }
        } while (!isset($slice));
        $this->slice = $slice;
        $this->reportedNs = $slice['start_ns'];
        $this->fromNs = $this->countedFromNs();
        $this->lastNs = $slice['start_ns'] + $slice['length_ns'];
        $this->passNs += $slice['start_ns'] - $this->tapeNs;
        $this->stopped = false;
        $this->half = null;
        $this->lookNs = 0;
        $this->beforeSlice = [$this->counted->played, $this->counted->failed, $this->leadIn->played];
        $this->session->begin($this->quiet);
        $this->beginPart($this->leadIn, $this->fromNs);
        $this->usage = getrusage();
        $this->wait($slice['start_ns']);
        $this->now = hrtime(true);
        // A closed loop that had no CPU until the lead-in's end has no lead-in.
        if (!$slice['lead_in_ns'] || !$this->tape->openLoop && $this->now >= $this->fromNs) {
            $this->beginCounting();
        }
        return true;
    }

    /** A caller without a CPU until the middle has nothing in the first half. */
    private function beginCounting(): void
    {
        $halves = !$this->tape->openLoop && $this->now < $this->middleNs();
        $this->beginPart($this->counted, $halves ? min($this->lastNs, $this->middleNs()) : $this->lastNs);
    }

    /** The middle of the slice's counted part. */
    private function middleNs(): int
    {
        return $this->slice['start_ns'] + intdiv($this->slice['lead_in_ns'] + $this->slice['length_ns'], 2);
    }

    /** The first half of what is counted: its operations and its length. @return array{half_ops: int, half_ns: int} */
    private function half(): array
    {
        [$endedNs, $ops] = $this->half ?? [min($this->middleNs(), $this->lastNs), 0];
        $none = $this->tape->openLoop || $this->slice['lead_in_ns'] >= $this->slice['length_ns'];
        return $none ? ['half_ops' => 0, 'half_ns' => 0] : ['half_ops' => $ops, 'half_ns' => max(0, $endedNs - $this->fromNs)];
    }

    /** When the slice's lead-in ends. */
    private function countedFromNs(): int
    {
        return $this->slice['start_ns'] + $this->slice['lead_in_ns'];
    }

    /** The length of the counted part: at least to the slice's end, to include time without a CPU. */
    private function countedNs(int $endedNs): int
    {
        $allLeadIn = $this->slice['lead_in_ns'] >= $this->slice['length_ns'];
        return $allLeadIn ? 0 : max(0, max($endedNs, $this->lastNs) - $this->fromNs);
    }

    private function beginPart(Recorder $record, int $endNs): void
    {
        $this->record = $record;
        $this->groups?->beginPart($record === $this->counted);
        $this->endNs = $endNs;
        $this->before = [$record->played, $record->unsent];
    }

    /** Send the parent the result of a slice, and the length of its counted part, if there are operations. */
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
        $part = $this->tape->openLoop ? max(0, $this->lastNs - $this->countedFromNs())
            : $this->countedNs($counted ? $record->endedNs : $this->fromNs);
        $this->tapeNs = max($this->slice['start_ns'], $this->lastNs); // a stop may come before the begin
        $usage = getrusage();
        foreach (['utime', 'stime'] as $i => $which) {
            $this->cpuNs[$i] += self::cpu($usage, $which) - self::cpu($this->usage, $which);
        }
        $errors = $record->failed - $failed;
        $this->parent->send([
            'type' => 'slice_done', 'ops' => $counted - $errors, 'errors' => $errors, 'lead_in_ops' => $leadInOps,
        ] + ($this->length || $this->tape->openLoop ? ['elapsed_ns' => $part, ...$this->half()] : []));
    }
}

/** The parent's view of the lanes' slices. */
trait SlicedPlayer
{
    /** The length of all slices, from `begin_slices` to `end_slices`; null without slices. */
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
        $parts = array_column($lanes, 'elapsed_ns'); // of the lanes that have operations
        $this->slicesNs += $elapsedNs = $parts ? intdiv(array_sum($parts), count($parts)) : 0;
        $sums = array_map(static fn ($name) => array_sum(array_column($lanes, $name)), ['ops', 'errors', 'lead_in_ops', 'half_ops', 'half_ns']);
        return [
            'type' => 'slice_done', 'ops' => $sums[0], 'errors' => $sums[1], 'lead_in_ops' => $sums[2], 'elapsed_ns' => $elapsedNs,
            'half_ops' => $sums[3], 'half_ns' => $parts ? intdiv($sums[4], count($parts)) : 0,
        ];
    }

    /** The results of all slices; null if there were none. @return array<string, mixed>|null */
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
