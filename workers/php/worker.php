<?php
// The worker for memcached clients in PHP: `php worker.php CLIENT`.
//
//   worker.php         requests in, answers out     src/tape.php       what is to be done
//   src/team.php       the lanes, from the parent   src/judge.php      what an answer comes to
//   src/lane.php       the measured loops           src/record.php     what is noted, and its sums
//   src/session.php    what a client file has       src/histogram.php  HdrHistogram, in PHP
//   src/course.php     the window by slices         src/wire.php       JSON lines
//   clients/           one file for each library

declare(strict_types=1);

// What libraries print goes to stderr: the descriptor of stdout is closed, and the next to be opened
// takes its number. A process that has started itself again (Client::restart) has that behind it, and
// is told which descriptor its answers go to: the lowest that was free then.
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

foreach (['wire', 'tape', 'judge', 'histogram', 'session', 'course', 'record', 'lane', 'team'] as $part) {
    require __DIR__ . "/src/$part.php";
}

final class Worker
{
    private ?Team $team = null;
    private bool $known = false;

    public function __construct(private readonly string $name, private readonly Wire $orchestrator)
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
                    $this->orchestrator->tell($answer);
                }
            }
        } while ($requests = $this->orchestrator->wait());
        $this->team?->close();
    }

    /** @param array<string, mixed> $request @return array<string, mixed>|null */
    private function answer(array $request): ?array
    {
        try {
            return match ($request['type']) {
                'hello' => $this->hello(),
                'prepare' => $this->prepare($request),
                'run' => $this->run($request),
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
            return self::failed('internal', (string) $error);
        }
    }

    /** @return array<string, mixed> */
    private static function failed(string $kind, string $text): array
    {
        return ['type' => 'error', 'kind' => $kind, 'text' => $text, 'definite' => true];
    }

    /** Who this is. A library that is not there is an answer too. @return array<string, mixed> */
    private function hello(): array
    {
        if (!$this->known) {
            require __DIR__ . "/clients/{$this->name}.php";
            $this->known = true;
        }
        foreach (['pcntl' => 'php8.2-cli', 'posix' => 'php8.2-cli', Client::EXTENSION => Client::PACKAGE] as $extension => $package) {
            if (!extension_loaded($extension)) {
                throw new Unsupported("{$this->name}: PHP has no extension $extension", "apt-get install $package");
            }
        }
        if ($reason = Client::absent()) {
            throw new Unsupported("{$this->name}: $reason");
        }
        $kinds = array_values(array_filter(Tape::kinds(), static fn ($kind) => Client::can($kind)));
        return [
            'type' => 'ready', 'protocol' => 1, 'client' => 'php/' . $this->name, 'library' => Client::LIBRARY,
            'library_version' => Client::libraryVersion(), 'language' => 'php', 'runtime' => 'PHP ' . PHP_VERSION,
            'capabilities' => [...Client::WIRES, 'threads', 'open_loop', 'course', ...Client::FEATURES, ...$kinds],
        ];
    }

    /** Read the tape, refuse what cannot be done, connect. @param array<string, mixed> $request @return array<string, mixed> */
    private function prepare(array $request): array
    {
        $this->hello();
        $this->disband();
        $setup = new Setup($request);
        $tape = new Tape($setup->tape);
        $this->check($setup, $tape);
        Client::restart($setup, $request);
        $this->team = new Team($tape, $setup, $this->orchestrator);
        if ($error = $this->team->opened()) {
            $this->disband();
        }
        return $error ?? ['type' => 'ready'];
    }

    /** Refuse what the client cannot do, before anything is timed. Raises Unsupported. */
    private function check(Setup $setup, Tape $tape): void
    {
        $missing = array_filter(array_keys($tape->kinds), static fn ($kind) => !Client::can($kind));
        $local = Client::WIRES === ['none'];
        $wire = $local && $setup->wire === 'text' && !$setup->servers ? 'none' : $setup->wire;
        $refusals = [
            $missing ? 'no ' . implode(', ', $missing) : '',
            $tape->thinks ? 'no time to think between operations' : '',
            in_array($wire, Client::WIRES, true) ? '' : "no wire $wire, only " . implode(', ', Client::WIRES),
            $local && $setup->servers ? 'a cache in the process takes no servers' : '',
            !$local && !$setup->servers ? 'no servers are named' : '',
            count($setup->servers) > 1 && !in_array('cluster', Client::FEATURES, true) ? 'one server, not several' : '',
            preg_grep('/^unix:/', $setup->servers) && !in_array('unix', Client::FEATURES, true) ? 'no Unix sockets' : '',
            $setup->depth > 1 ? 'one operation at a time on a connection (depth 1)' : '',
            !$local && $setup->connections !== $setup->threads ? 'one connection for each thread, which is a process' : '',
            Client::refuse($tape, $setup),
        ];
        foreach ($setup->options as $name => $value) {
            $pattern = (Client::OPTIONS + ['profile' => 'common|defaults'])[$name] ?? null;
            $refusals[] = $pattern === null ? "no option $name" : '';
            $refusals[] = $pattern !== null && !preg_match("/^(?:$pattern)$/D", $value) ? "$name=$value, which is not $pattern" : '';
        }
        foreach (array_filter($refusals) as $reason) {
            throw new Unsupported("{$this->name}: $reason");
        }
    }

    /** @param array<string, mixed> $request @return array<string, mixed> */
    private function run(array $request): array
    {
        if ($this->team === null) {
            return self::failed('protocol', 'run before prepare');
        }
        $answer = $this->team->run($request);
        if ($answer['type'] === 'error') {
            $this->disband();
        }
        return $answer;
    }

    private function disband(): void
    {
        $this->team?->close();
        $this->team = null;
    }
}

$known = array_map(static fn ($path) => basename($path, '.php'), glob(__DIR__ . '/clients/*.php'));
if ($argc !== 2 || !in_array($argv[1], $known, true)) {
    fwrite(STDERR, 'worker.php CLIENT: one of ' . implode(', ', $known) . "\n");
    exit(2);
}
(new Worker($argv[1], new Wire(STDIN, $out)))->serve();
