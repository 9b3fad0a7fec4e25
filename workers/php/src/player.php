<?php
// The parent's view of a trial's lanes: it starts them, sends requests, reads and adds up their answers.
//
// A lane is a forked process, since PHP has no threads. It opens its connections after the fork; memory
// that processes share, such as APCu's, exists before it. The parent only waits, so it can answer even
// if a call of the library blocks or kills a lane.

declare(strict_types=1);

final class Player
{
    use SlicedPlayer;

    /** A call that outlasts every time-out by this much will never return. */
    private const LOST_NS = 5_000_000_000;
    /** The time that lanes need to get the request before a window begins: in all, and for each. */
    private const START_AHEAD_NS = 2_000_000;
    private const START_AHEAD_LANE_NS = 500_000;
    private const PROGRESS_NS = 1_000_000_000;
    private const START_GRACE_NS = 60_000_000_000;

    /** @var array<int, Messages> by process id */
    private array $lanes = [];
    private int $sharedNs;

    public function __construct(private readonly Tape $tape, private readonly Prepare $setup, private readonly Messages $orchestrator)
    {
        for ($number = 0; $number < $setup->threads; $number++) {
            [$ours, $theirs] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
            $pid = pcntl_fork();
            if ($pid === 0) {
                fclose($ours);
                $this->lanes = []; // a lane must hold no end of another's pipe, to notice the parent's end
                (new LaneProcess(new Messages($theirs, $theirs)))->live($tape, $setup, $number);
                exit(0);
            }
            fclose($theirs);
            $this->lanes[$pid] = new Messages($ours, $ours);
        }
    }

    /** Wait until every lane is open; null, or the error. @return array<string, mixed>|null */
    public function opened(): ?array
    {
        $until = hrtime(true) + self::START_GRACE_NS + 2 * $this->setup->timeoutMs * 1_000_000;
        return $this->gather('ready', static fn () => hrtime(true) > $until)['error'] ?? null;
    }

    /** Play one phase. @param array<string, mixed> $request @return array<string, mixed> */
    public function run(array $request): array
    {
        $this->endSlices();
        $callsPath = $request['calls'] ?? '';
        if ($callsPath !== '') {
            CallLog::begin($callsPath);
        }
        foreach (array_values($this->lanes) as $t => $lane) {
            $lane->send([
                'type' => 'run', 'phase' => $request['phase'], 'duration_ms' => $request['duration_ms'] ?? null, 'calls' => $callsPath,
                'gives_up' => $request['gives_up'] ?? null,
                'ops' => isset($request['ops']) ? self::part($request['ops'], $t, count($this->lanes)) : null,
            ]);
        }
        $until = hrtime(true) + self::START_GRACE_NS;
        $armed = $this->gather('armed', static fn () => hrtime(true) > $until);
        if (isset($armed['error'])) {
            return $armed['error'];
        }
        $this->sharedNs = self::startNs($request['start_unix_ns'] ?? 0, self::START_AHEAD_NS + self::START_AHEAD_LANE_NS * count($this->lanes));
        $this->tell(['type' => 'start', 'start_ns' => $this->sharedNs]);
        $done = $this->gather('done', $this->progress());
        return $done['error'] ?? self::merge($request['phase'], $done);
    }

    /** @param array<string, mixed> $message */
    private function tell(array $message): void
    {
        foreach ($this->lanes as $lane) {
            $lane->send($message);
        }
    }

    /** The begin of a window: as planned, but not before a minimal time from now. */
    private static function startNs(int $startUnixNs, int $aheadNs): int
    {
        $now = hrtime(true);
        [$seconds, $nanoseconds] = self::wallClock();
        return $now + max($aheadNs, $startUnixNs - ($seconds * 1_000_000_000 + $nanoseconds));
    }

    /** Seconds and nanoseconds since the epoch, to the µs. @return array{int, int} */
    private static function wallClock(): array
    {
        ['sec' => $seconds, 'usec' => $microseconds] = gettimeofday();
        return [$seconds, $microseconds * 1000];
    }

    /**
     * Collect one answer of a type from each lane, by process id, or an error under `error`.
     * Calls `$tick` each time that something came in, and about once a second; true: no more waiting.
     *
     * @param Closure(array<int, array<string, mixed>>): bool $tick
     * @return array<int|string, array<string, mixed>>
     */
    private function gather(string $type, Closure $tick): array
    {
        $answers = [];
        $heard = [];
        while (count($answers) < count($this->lanes)) {
            $read = array_map(static fn ($lane) => $lane->in, array_diff_key($this->lanes, $answers));
            $read[0] = $this->orchestrator->in;
            [$write, $except] = [null, null];
            @stream_select($read, $write, $except, 0, 250_000);
            if (isset($read[0])) {
                $this->obey();
            }
            foreach (array_diff_key($this->lanes, $answers) as $pid => $lane) {
                foreach ($lane->poll() as $answer) {
                    if ($answer['type'] === 'error') {
                        return ['error' => $answer];
                    }
                    $heard[$pid] = $answer + ['at_ns' => hrtime(true)];
                    if ($answer['type'] === $type) {
                        $answers[$pid] = $answer;
                    }
                }
                if ($lane->ended && !isset($answers[$pid])) {
                    return ['error' => $this->fail('client', 'a lane died in a call of the library')];
                }
            }
            if (count($answers) < count($this->lanes) && $tick($heard)) {
                return ['error' => $this->fail('client', 'a call of the library does not return')];
            }
        }
        return $answers;
    }

    /** Report progress about each second, except for a slice; true once a lane was silent for too long. */
    private function progress(bool $told = true): Closure
    {
        $reportedNs = $this->sharedNs;
        $lostNs = self::LOST_NS + 2 * $this->setup->timeoutMs * 1_000_000 + self::PROGRESS_NS;
        return function (array $heard) use (&$reportedNs, $lostNs, $told): bool {
            $now = hrtime(true);
            if ($told && $now - $reportedNs >= self::PROGRESS_NS) {
                $reportedNs = $now;
                $this->orchestrator->send([
                    'type' => 'progress',
                    'ops' => array_sum(array_map(static fn ($answer) => $answer['ops'] ?? $answer['played'] ?? 0, $heard)),
                    'errors' => array_sum(array_column($heard, 'errors')),
                ]);
            }
            foreach (array_keys($this->lanes) as $pid) {
                if ($now - max($heard[$pid]['at_ns'] ?? 0, $this->sharedNs) > $lostNs && !in_array($heard[$pid]['type'] ?? '', ['done', 'slice_done'], true)) {
                    return true;
                }
            }
            return false;
        };
    }

    /** During a run the orchestrator says `stop`, `bye`, or nothing more. */
    private function obey(): void
    {
        $requests = $this->orchestrator->poll();
        foreach ($requests as $request) {
            if ($request['type'] === 'stop' || $request['type'] === 'bye') {
                $this->tell(['type' => 'stop']);
            }
        }
        if ($this->orchestrator->ended || in_array('bye', array_column($requests, 'type'), true)) {
            $this->close();
            exit(0);
        }
    }

    /** @return array<string, mixed> */
    private function fail(string $kind, string $text): array
    {
        return ['type' => 'error', 'kind' => $kind, 'text' => $text, 'definite' => false];
    }

    /** End the lanes, even a lane in a call of the library. */
    public function close(): void
    {
        foreach (array_keys($this->lanes) as $pid) {
            posix_kill($pid, SIGKILL);
            pcntl_waitpid($pid, $status);
        }
        $this->lanes = [];
    }

    private static function part(int $total, int $number, int $parts): int
    {
        return intdiv($total, $parts) + ($number < $total % $parts ? 1 : 0);
    }

    /** The lanes' counts as one. @param array<int, array<string, mixed>> $lanes @return array<string, mixed> */
    private static function merge(string $phase, array $lanes): array
    {
        $all = static fn (string $name) => array_column($lanes, $name);
        $startNs = $all('start_ns')[0];
        $timeline = Timeline::merge($all('timeline'));
        $sections = array_filter($all('sections'));
        return [
            ...self::figures($phase, $lanes),
            'elapsed_ns' => max(0, max($all('ended_ns')) - $startNs),
            'send_elapsed_ns' => max(0, max($all('sent_ns')) - $startNs),
            'timeline' => $timeline,
            'sections' => $timeline && $sections ? Timeline::sections($timeline, self::sectioned($sections)) : null,
        ];
    }

    /** The part of `done` that every run has. @param array<int, array<string, mixed>> $lanes @return array<string, mixed> */
    private static function figures(string $phase, array $lanes): array
    {
        $all = static fn (string $name) => array_column($lanes, $name);
        $operations = self::counts($all('operations'));
        foreach ($operations as $kind => $counts) {
            $parts = array_column($all('operations'), $kind);
            $service = self::sum(array_column($parts, 'service'));
            $response = self::sum(array_column($parts, 'response')) ?: $service;
            $operations[$kind] = $counts + [
                'service' => $coded = Histogram::encode($service),
                // In a closed loop the two are the same.
                'response' => $response === $service ? $coded : Histogram::encode($response),
            ];
        }
        return [
            'type' => 'done', 'phase' => $phase, 'operations' => (object) $operations,
            'send_lag' => Histogram::encode(self::sum($all('lag'))),
            'max_in_flight' => count(array_filter($all('played'))),
            'queued' => array_sum($all('queued')),
            'unsent' => array_sum($all('unsent')),
            // The libraries do not report their reconnects, and the worker itself makes none.
            'reconnects' => 0,
            'renewed' => array_sum($all('renewed')),
            'cpu_user_ns' => array_sum($all('cpu_user_ns')),
            'cpu_system_ns' => array_sum($all('cpu_system_ns')),
            'barriers' => array_sum($all('barriers')),
            'groups' => Groups::message($all('groups')),
            'wrong_replies' => CallLog::wrongReplies($all('wrong_replies')),
            'store_bytes' => Client::storeBytes(),
        ];
    }

    /** Counts and errors by kind. @param list<array<string, array<string, mixed>>> $lanes @return array<string, array<string, mixed>> */
    private static function counts(array $lanes): array
    {
        $counts = [];
        foreach (array_keys(array_merge(...array_values($lanes))) as $kind) {
            $parts = array_column($lanes, $kind);
            $errors = ['errors' => (object) self::sum(array_column($parts, 'errors'))];
            $counts[$kind] = self::sum(array_column($parts, 'figures')) + $errors;
        }
        return $counts;
    }

    /** A histogram for each section, of all lanes. @param list<list<array<int, int>>> $lanes @return list<string|null> */
    private static function sectioned(array $lanes): array
    {
        return array_map(
            static fn (int $section) => Histogram::encode(self::sum(array_column($lanes, $section))),
            range(0, Timeline::SECTIONS - 1),
        );
    }

    /** Sums by key. @param list<array<int|string, int>> $parts @return array<int|string, int> */
    private static function sum(array $parts): array
    {
        $sum = [];
        foreach ($parts as $part) {
            foreach ($part as $key => $count) {
                $sum[$key] = ($sum[$key] ?? 0) + $count;
            }
        }
        return $sum;
    }
}
