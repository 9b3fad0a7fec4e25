<?php
// The worker for memcached clients in PHP: `php worker.php CLIENT`.
//
//   worker.php        requests in, answers out       src/lane.php       the measured loops
//   src/prepare.php   the request `prepare`        src/verify.php     the result of a reply
//   src/client.php    the base of a client file   src/recorder.php   the records, and their sums
//   src/player.php    one prepared trial, its lanes  src/histogram.php  HdrHistogram, in PHP
//   src/tape.php      the tape, checked              src/timeline.php   the window in slices and sections
//   src/messages.php  JSON lines                     src/slices.php     the tape played in turns
//   src/call_log.php  a record of each call          src/groups.php     the times of whole groups
//   src/give_up.php   callers that give up calls     src/lane_process.php  the process of a lane
//   src/memory_limit.php  a script that ends within a call, and goes on
//   src/renewal.php   connections that are opened again as asked
//   src/telling.php   what a lane tells its parent while it works
//   src/operation.php a record of the tape, as an operation
//   clients/          one file for each library      README.md          what a client file must contain

declare(strict_types=1);

// Output of libraries goes to stderr: this closes the descriptor of stdout, and the next one that opens
// takes its number. A process that has restarted itself (Client::restart) has already done so, and gets
// the number of the descriptor for its answers: the lowest that was free then.
$place = getenv('CACHEMARK_OUT');
if ($place === false) {
    for ($place = 3; is_link("/proc/self/fd/$place"); $place++);
    $out = fopen('php://fd/1', 'w');
    fclose(STDOUT);
    $log = fopen('php://fd/2', 'w');
    putenv("CACHEMARK_OUT=$place");
} else {
    $out = fopen("php://fd/$place", 'w');
}

set_error_handler(static function (int $level, string $text): bool {
    if ((error_reporting() & $level) !== 0) {
        fwrite(STDERR, "$text\n");
    }
    return true;
});

foreach (['messages', 'operation', 'tape', 'verify', 'histogram', 'prepare', 'client', 'timeline', 'recorder', 'groups', 'call_log', 'memory_limit', 'give_up', 'slices', 'renewal', 'telling', 'lane', 'lane_process', 'player'] as $part) {
    require __DIR__ . "/src/$part.php";
}

final class Worker
{
    private ?Player $player = null;
    private bool $known = false;

    public function __construct(private readonly string $name, private readonly Messages $orchestrator)
    {
    }

    /** Answer until `bye` or the end of stdin. A request that came before an exec is answered first. */
    public function serve(): void
    {
        $requests = array_filter([json_decode(getenv('CACHEMARK_REQUEST') ?: 'null', true)]);
        putenv('CACHEMARK_REQUEST');
        do {
            foreach ($requests as $request) {
                if ($request['type'] === 'bye') {
                    break 2;
                }
                if ($answer = $this->answer($request)) {
                    $this->orchestrator->send($answer);
                }
            }
        } while ($requests = $this->orchestrator->wait());
        $this->player?->close();
    }

    /** @param array<string, mixed> $request @return array<string, mixed>|null */
    private function answer(array $request): ?array
    {
        try {
            return match ($request['type']) {
                'hello' => $this->hello(),
                'prepare' => $this->prepare($request),
                'run' => $this->run($request),
                'begin_slices' => $this->beginSlices(),
                'slice' => $this->slice($request),
                'end_slices' => $this->player?->endSlices() ?? self::failed('protocol', 'end_slices before begin_slices'),
                'stop' => null, // the run is over already
                default => self::failed('protocol', 'not a request: ' . ($request['text'] ?? $request['type'])),
            };
        } catch (Unsupported $refusal) {
            return ['type' => 'unsupported', 'reason' => $refusal->getMessage(), 'remedy' => $refusal->remedy];
        } catch (TapeError $error) {
            return self::failed('tape', $error->getMessage());
        } catch (Unreachable $error) {
            return self::failed('connect', $error->getMessage());
        } catch (Throwable $error) {
            fwrite(STDERR, "$error\n");
            return self::failed('internal', describe($error));
        }
    }

    /** @return array<string, mixed> */
    private static function failed(string $kind, string $text): array
    {
        return ['type' => 'error', 'kind' => $kind, 'text' => $text, 'definite' => true];
    }

    /** The answer to `hello`, also if the library is missing. @return array<string, mixed> */
    private function hello(): array
    {
        if (!$this->known) {
            require __DIR__ . "/clients/{$this->name}.php";
            $this->known = true;
        }
        foreach (['pcntl' => 'php-cli', 'posix' => 'php-cli', Client::EXTENSION => Client::PACKAGE] as $extension => $package) {
            if (!extension_loaded($extension)) {
                throw new Unsupported("{$this->name}: PHP has no extension $extension", "apt-get install $package");
            }
        }
        if ($reason = Client::absent()) {
            throw new Unsupported("{$this->name}: $reason", Client::REMEDY);
        }
        $kinds = array_values(array_filter(Tape::kinds(), static fn ($kind) => Client::can($kind)));
        return [
            'type' => 'ready', 'protocol' => 2, 'client' => 'php/' . $this->name, 'library' => Client::LIBRARY,
            'library_version' => Client::libraryVersion(), 'language' => 'php', 'runtime' => 'PHP ' . PHP_VERSION,
            'capabilities' => [...Client::WIRES, 'threads', 'open_loop', 'timeline', 'slices', 'groups', 'calls', ...(Client::WIRES === ['none'] ? [] : ['fork', 'exhaust']), ...Client::FEATURES, ...$kinds],
        ];
    }

    /** Read the tape, refuse what the client cannot do, and connect. @param array<string, mixed> $request @return array<string, mixed> */
    private function prepare(array $request): array
    {
        $this->hello();
        $this->closePlayer();
        $setup = new Prepare($request);
        $tape = new Tape($setup->tape);
        $setup->check($this->name, $tape);
        Client::restart($setup, $request);
        $this->player = new Player($tape, $setup, $this->orchestrator);
        if ($error = $this->player->opened()) {
            $this->closePlayer();
        }
        return $error ?? ['type' => 'ready'];
    }

    /** @param array<string, mixed> $request @return array<string, mixed> */
    private function run(array $request): array
    {
        if ($this->player === null) {
            return self::failed('protocol', 'run before prepare');
        }
        return $this->played($this->player->run($request));
    }

    /** Make room now: nothing of that comes between slices. @return array<string, mixed> */
    private function beginSlices(): array
    {
        return $this->played($this->player?->beginSlices() ?? self::failed('protocol', 'begin_slices before prepare'));
    }

    /** @param array<string, mixed> $request @return array<string, mixed> */
    private function slice(array $request): array
    {
        if (!$this->player?->hasSlices()) {
            return self::failed('protocol', 'slice before begin_slices');
        }
        [$lengthUs, $leadInUs] = [$request['length_us'] ?? null, $request['lead_in_us'] ?? 0];
        if (!is_int($lengthUs) || !is_int($leadInUs) || $leadInUs < 0 || $leadInUs > $lengthUs) {
            return self::failed('protocol', 'a slice has a length, and a lead-in that is not longer');
        }
        return $this->played($this->player->slice($lengthUs, $leadInUs, $request['start_unix_ns'] ?? 0));
    }

    /** An answer of the lanes: after an error they are in no state to play. @param array<string, mixed> $answer @return array<string, mixed> */
    private function played(array $answer): array
    {
        if ($answer['type'] === 'error') {
            $this->closePlayer();
        }
        return $answer;
    }

    private function closePlayer(): void
    {
        $this->player?->close();
        $this->player = null;
    }
}

$known = array_map(static fn ($path) => basename($path, '.php'), glob(__DIR__ . '/clients/*.php'));
if ($argc !== 2 || !in_array($argv[1], $known, true)) {
    fwrite(STDERR, 'worker.php CLIENT: one of ' . implode(', ', $known) . "\n");
    exit(2);
}
(new Worker($argv[1], new Messages(STDIN, $out)))->serve();
