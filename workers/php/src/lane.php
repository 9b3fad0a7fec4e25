<?php
// A lane: one caller, in a process of its own. Between two readings of the clock there is only the
// library's call; the code around it is as short as PHP allows.

declare(strict_types=1);

final class Lane
{
    use RenewedLane;
    use SlicedLane;
    use Telling;

    /** The interval at which a lane checks for a stop, and for the end of its parent. */
    private const LOOK_NS = 20_000_000;
    private const SUMMED_AT_ONCE = 10_000;
    private const PROGRESS_NS = 1_000_000_000;
    /** A sleep ends some tens of µs late, so the last part of a wait polls the clock. */
    private const SPIN_NS = 200_000;
    private const FOR_EVER_NS = PHP_INT_MAX >> 1;
    /** A lane creates operations before a window unless their values would take more memory than this. */
    private const HELD_BYTES = 1 << 30;

    private BaseClient $session;
    /** @var array<string, int> */
    private array $kinds;
    /** @var array<int, Operation>|null null: they are made just before their turn */
    private ?array $made = null;
    /** @var list<int> */
    private array $dues;
    private int $length;
    private int $place;
    private int $lanes;
    private int $timeoutNs;
    private readonly int $drainNs;
    /** @var list<int> */
    private readonly array $shifts;
    /** Whether the tape has operations without a reply. */
    private readonly bool $quiet;

    private Recorder $record;
    private ?Groups $groups = null;
    private ?CallLog $calls = null;
    private int $responseNs = 0;
    /** When the last operation ended. */
    private int $now = 0;
    /** When this pass of the tape began, in an open loop. */
    private int $passNs = 0;
    /** When the window ends, or this part of a slice; and when the window, or the slice. */
    private int $endNs = 0;
    private int $lastNs = 0;
    private int $lookNs = 0;
    private int $reportedNs = 0;
    private bool $stopped = false;

    public function __construct(private readonly Messages $parent, private readonly Tape $tape, private readonly Prepare $setup, int $number)
    {
        $this->session = new Client($setup, $tape);
        $tape->anyGeneration = $tape->anyGeneration || !$setup->playsAsMeant($tape);
        $this->kinds = array_flip(array_values(array_unique(['set', ...array_keys($tape->kinds)])));
        $this->place = $setup->share * $setup->threads + $number;
        $this->lanes = $setup->shares * $setup->threads;
        // Without a server, no call is late.
        $this->timeoutNs = Client::WIRES === ['none'] ? self::FOR_EVER_NS : $setup->timeoutMs * 1_000_000;
        $this->drainNs = 2 * $setup->timeoutMs * 1_000_000;
        $this->quiet = (bool) preg_grep('/_noreply$/', array_keys($tape->kinds));
        $this->shifts = Histogram::shifts();
        $this->dues = $tape->dues($this->place, $this->lanes);
        $this->reconnectAfter = (int) $setup->option('reconnect_after', '0');
        if (!$this->reconnectAfter && $tape->heldBytes($this->place, $this->lanes) <= self::HELD_BYTES) {
            $this->made = iterator_to_array($this->bound($tape->lane($this->place, $this->lanes, true)), false);
        }
        $this->length = $tape->laneLength($this->place, $this->lanes);
    }

    /** Give each operation its call. @param iterable<Operation> $operations @return Generator<Operation> */
    private function bound(iterable $operations): Generator
    {
        foreach ($operations as $op) {
            if ($op->call === null) {
                $op->base = $this->kinds[$op->kind] * Histogram::PLACES;
                $this->session->{$op->kind}($op);
            }
            yield $op;
        }
    }

    /** The lane's operations from the first one on. @return iterable<Operation> */
    private function script(): iterable
    {
        return $this->made ?? $this->bound($this->tape->lane($this->place, $this->lanes, false));
    }

    /** Play one phase. `$start` tells that all is ready and says when to begin. @param array<string, mixed> $request @return array<string, mixed> */
    public function run(array $request, Closure $start): array
    {
        ['phase' => $phase, 'ops' => $ops, 'duration_ms' => $durationMs, 'calls' => $callsPath] = $request;
        $this->calls = $callsPath === '' ? null : new CallLog($callsPath, $this->tape->group, $this->place, $this->lanes, $this->length);
        $timeline = new Timeline($durationMs);
        $sections = $timeline->sliceNs && $this->lanes * count($this->kinds) <= Timeline::MOST_SECTIONED ? Timeline::SECTIONS : 1;
        $this->record = $record = new Recorder($this->kinds, $timeline, $sections);
        $this->responseNs = $this->renewed = 0;
        $this->stopped = false;
        $prefill = $phase === 'prefill';
        $this->tape->begins($prefill);
        $quiet = !$prefill && $this->quiet;
        $open = $this->tape->openLoop && !$prefill;
        $this->groups = $prefill ? null : Groups::of($this->tape);
        if ($open) {
            $record->forOpenLoop();
        }
        $this->session->begin($quiet);
        $script = $prefill ? fn () => $this->bound($this->tape->prefill($this->place, $this->lanes)) : $this->played(...);
        $length = $prefill ? $this->tape->prefillLength($this->place, $this->lanes) : $this->length;
        $limit = $prefill ? $length : ($length ? $ops ?? PHP_INT_MAX : 0);
        $giveUp = $open ? GiveUp::of($request['gives_up'], $this->session, $this->place) : null;
        $startNs = $start();
        $timeline->start($startNs);
        $this->endNs = $this->lastNs = $durationMs === null ? self::FOR_EVER_NS : $startNs + $durationMs * 1_000_000;
        $this->reportedNs = $this->passNs = $this->now = $record->sentNs = $startNs;
        $script = $giveUp?->script($script, $startNs) ?? $script;
        $before = getrusage();
        $this->wait($startNs);
        $open ? $this->playOpenLoop($script, $limit) : $this->playClosedLoop($script, $limit);
        $timeline->close($record->played - $record->failed, $record->response ? $this->responseNs : array_sum($record->busyNs));
        $record->endedNs = $record->sentNs;
        if ($quiet && $record->played) {
            $this->endQuiet();
        }
        $after = getrusage();
        $facts = $prefill ? $this->tape->prefill($this->place, $this->lanes, false) : $this->script();
        $record->total($this->whileTelling($facts), $length);
        return [
            ...$record->message(), 'start_ns' => $startNs, 'groups' => $this->groups?->counts(), 'wrong_replies' => $this->calls->wrong ?? [], 'renewed' => $this->renewed,
            'cpu_user_ns' => self::cpu($after, 'utime') - self::cpu($before, 'utime'),
            'cpu_system_ns' => self::cpu($after, 'stime') - self::cpu($before, 'stime'),
        ];
    }

    /** @param array<string, int> $usage */
    private static function cpu(array $usage, string $which): int
    {
        return ($usage["ru_$which.tv_sec"] * 1_000_000 + $usage["ru_$which.tv_usec"]) * 1000;
    }

    /** Call after call until the window ends, or the last slice. @param Closure(): iterable<Operation> $script */
    private function playClosedLoop(Closure $script, int $limit): void
    {
        [$timeoutNs, $shifts, $lookNs, $groups] = [$this->timeoutNs, $this->shifts, 0, $this->groups];
        [$record, $service, $busyNs, $played, $now] = $this->takeCounts();
        $sliceEndsNs = $record->timeline->endNs;
        while ($played < $limit) {
            foreach ($script() as $op) {
                if ($now >= $lookNs) {
                    while (!$this->look($now, $played)) {
                        $this->giveCounts($service, $busyNs, $played, $now);
                        $more = $this->nextPart();
                        [$record, $service, $busyNs, $played, $now] = $this->takeCounts();
                        if (!$more) {
                            break 3;
                        }
                    }
                    $lookNs = $this->lookNs;
                }
                if ($played === $limit) {
                    break 2;
                }
                $began = hrtime(true);
                try {
                    $answer = ($op->call)(...$op->arguments);
                } catch (Throwable $answer) { // an exception is an answer, too
                }
                $took = ($now = hrtime(true)) - $began;
                if ($now >= $sliceEndsNs) {
                    $record->timeline->close($played - $record->failed, array_sum($busyNs));
                    $service = $record->nextSlice($now, $service);
                    $sliceEndsNs = $record->timeline->endNs;
                }
                $played++;
                $shift = $shifts[$took >> 11] ?? Histogram::shift($took);
                if ($answer === $op->expected && $took < $timeoutNs) {
                    $service[$op->base + ($shift << 10) + ($took >> $shift)]++;
                    $busyNs[$op->base] += $took;
                    $groups?->note(true, $began, $now);
                    continue;
                }
                $code = $this->note($op, $answer, $took);
                if ($code >= 0 || $code === TIMEOUT) {
                    $service[$op->base + Histogram::place($took)]++;
                }
                $busyNs[$op->base] += $code >= 0 ? $took : 0;
                $groups?->note($code >= 0, $began, $now);
            }
        }
        $this->giveCounts($service, $busyNs, $played, $now);
        $record->sentNs = $now;
    }

    /** Each call when it is due, or as soon after that as this lane is free. @param Closure(): iterable<Operation> $script */
    private function playOpenLoop(Closure $script, int $limit): void
    {
        for (; $this->record->played < $limit; $this->passNs += $this->tape->periodNs) {
            $turn = 0;
            foreach ($script() as $op) {
                while ($this->isOver($due = $this->passNs + $this->dues[$turn], $limit)) {
                    if (!$this->nextPart()) {
                        return;
                    }
                }
                $turn++;
                if (hrtime(true) >= $this->drainNs()) {
                    $this->noteUnsent($op, $due);
                    continue;
                }
                $record = $this->record;
                $record->queued += (int) ($record->played > 0 && $this->now > $due);
                $began = hrtime(true);
                try {
                    $answer = ($op->call)(...$op->arguments);
                } catch (Throwable $error) {
                    $answer = $error;
                }
                $this->now = hrtime(true);
                $this->noteOpen($op, $answer, $due, $began, $this->now);
            }
        }
    }

    /** Whether an operation that is due then is after the window; waits until it is due. */
    private function isOver(int $due, int $limit): bool
    {
        if ($this->now >= $this->lookNs) {
            $this->look($this->now, $this->record->played);
        }
        return $this->record->played + $this->record->unsent >= $limit || $due >= $this->endNs || !$this->wait($due);
    }

    /** Note an operation that was due in the window and will not be sent: it waited at least until now. */
    private function noteUnsent(Operation $op, int $due): void
    {
        $this->record->unsent++;
        $this->record->response[$op->base + Histogram::place(hrtime(true) - $due)]++;
    }

    private function noteOpen(Operation $op, mixed $answer, int $due, int $began, int $now): void
    {
        $record = $this->record;
        $took = $now - $began;
        if ($now >= $record->timeline->endNs) {
            $record->timeline->close($record->played - $record->failed, $this->responseNs);
            $record->response = $record->nextSlice($now, $record->response);
        }
        $record->played++;
        $record->sentNs = $now;
        $right = $answer === $op->expected && $took < $this->timeoutNs;
        $code = $right ? 0 : $this->note($op, $answer, $took);
        $this->calls?->note($record->played + $record->unsent - 1, $op, $right ? Verify::done($op) : $code, $answer, $began, $now);
        $record->lag[Histogram::place($began - $due)]++;
        if ($code >= 0 || $code === TIMEOUT) {
            $record->service[$op->base + Histogram::place($took)]++;
            $record->response[$op->base + Histogram::place($now - $due)]++;
        }
        if ($code >= 0) {
            $record->busyNs[$op->base] += $took;
            $this->responseNs += $now - $due;
        }
    }

    /** An answer other than the expected one; return its result. An error of this worker's own code is thrown. */
    private function note(Operation $op, mixed $answer, int $took): int
    {
        if (isOwnError($answer)) {
            throw $answer;
        }
        // Verify even a late answer: the client may hold its library's report.
        $code = $answer instanceof Throwable ? $this->session->failure($answer) : ($op->verify)($answer, $op);
        $code = $took >= $this->timeoutNs ? TIMEOUT : $code;
        $this->tape->anyGeneration = $this->tape->anyGeneration || $code < WRONG; // a failed write may still arrive
        $this->record->other($op, $code);
        return $code;
    }

    /** Check for a stop and for the parent: false if the window is over. */
    private function look(int $now, int $played): bool
    {
        foreach ($this->parent->poll() as $request) {
            if ($request['type'] === 'stop') {
                $this->stopped = true;
                [$this->endNs, $this->lastNs] = [min($this->endNs, $now), min($this->lastNs, $now)];
            }
        }
        if ($this->parent->ended) {
            exit(0);
        }
        $this->tellProgress($now, $played);
        $this->lookNs = min($this->endNs, $now + self::LOOK_NS);
        return $now < $this->endNs;
    }

    /** After this instant, an open loop sends no more operations of its window. */
    private function drainNs(): int
    {
        return $this->stopped ? $this->lastNs : $this->lastNs + $this->drainNs;
    }

    /** Wait for an instant. False if the run was stopped before it came. */
    private function wait(int $instantNs): bool
    {
        while (($left = $instantNs - ($now = hrtime(true))) > 0) {
            if ($now >= $this->lookNs) {
                $this->look($now, $this->record->played);
            }
            if ($this->stopped) {
                return false;
            }
            if ($left > self::SPIN_NS) {
                usleep(intdiv(min($left - self::SPIN_NS, self::LOOK_NS), 1000));
            }
        }
        return true;
    }

    /** Send commands with a reply after operations without one. */
    private function endQuiet(): void
    {
        try {
            $this->record->barriers += $this->session->barrier();
            $this->record->endedNs = hrtime(true);
        } catch (Throwable $error) { // the server is gone, with the last operations
            fwrite(STDERR, "no answer after the last operations without one: {$error->getMessage()}\n");
        }
    }
}
