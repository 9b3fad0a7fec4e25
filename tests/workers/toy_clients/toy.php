<?php
// toy: a socket and no library. The text protocol, `get` and `set`.

declare(strict_types=1);

/** A call failed; the code is what it counts as. */
final class ToyException extends Exception
{
}

final class Client extends BaseClient
{
    public const LIBRARY = 'none';
    public const EXTENSION = 'pcntl';
    public const PACKAGE = 'php-cli';
    public const WIRES = ['text'];

    /** @var resource|null */
    private mixed $socket = null;
    /** Whether a call has not ended: at the memory limit the script ends within it. */
    private bool $isInCall = false;

    public static function libraryVersion(): string
    {
        return '1';
    }

    protected function open(): void
    {
        try {
            $this->connect();
        } catch (ToyException $error) {
            throw new Unreachable("{$this->setup->servers[0]}: {$error->getMessage()}");
        }
    }

    private function connect(): void
    {
        $seconds = $this->setup->timeoutMs / 1000;
        $context = stream_context_create(['socket' => ['tcp_nodelay' => true]]);
        $address = "tcp://{$this->setup->servers[0]}";
        $socket = @stream_socket_client($address, $number, $text, $seconds, STREAM_CLIENT_CONNECT, $context);
        $this->socket = $socket ?: throw new ToyException($text, CONNECTION);
        stream_set_timeout($this->socket, intdiv($this->setup->timeoutMs, 1000), $this->setup->timeoutMs % 1000 * 1000);
    }

    private function ask(string $request): string
    {
        $this->isInCall && $this->close();
        $this->socket ?? $this->connect();
        $this->isInCall = true;
        if (@fwrite($this->socket, $request) !== strlen($request)) {
            $this->fail();
        }
        $line = $this->line();
        if (str_contains($line, 'ERROR')) {
            $this->isInCall = false;
            throw new ToyException($line, str_contains($line, 'SERVER_ERROR') ? SERVER : CLIENT);
        }
        return $line;
    }

    private function line(): string
    {
        $line = fgets($this->socket);
        return $line === false ? $this->fail() : $line;
    }

    /** After a failure the next call opens another connection. */
    private function fail(): never
    {
        $late = stream_get_meta_data($this->socket)['timed_out'];
        $this->close();
        throw new ToyException('no reply', $late ? TIMEOUT : CONNECTION);
    }

    private function close(): void
    {
        fclose($this->socket);
        [$this->socket, $this->isInCall] = [null, false];
    }

    public function failure(Throwable $error): int
    {
        return $error instanceof ToyException ? $error->getCode() : PROTOCOL;
    }

    private function fetch(string $key): ?string
    {
        // in a call: $key->method();
        $line = $this->ask("get $key\r\n");
        if ($line === "END\r\n") {
            $this->isInCall = false;
            return null;
        }
        $size = (int) explode(' ', $line)[3] + 2;
        $value = '';
        while (strlen($value) < $size) {
            $part = fread($this->socket, $size - strlen($value));
            $value .= $part === false || $part === '' ? $this->fail() : $part;
        }
        $this->line();
        $this->isInCall = false;
        return substr($value, 0, -2);
    }

    private function store(string $key, string $value, int $exptimeS): bool
    {
        $answer = $this->ask("set $key 0 $exptimeS " . strlen($value) . "\r\n$value\r\n");
        $this->isInCall = false;
        return $answer === "STORED\r\n";
    }

    public function get(Operation $op): void
    {
        $this->calls($op, $this->fetch(...), [$op->key], self::VERIFIED, $this->verified(...));
    }

    private function verified(?string $value, Operation $op): int
    {
        // in verification: $value->method();
        return $value === null ? 0 : $this->verify->found($value, $op);
    }

    public function set(Operation $op): void
    {
        $this->calls($op, $this->store(...), [$op->key, $op->value, $op->exptimeS], true, static fn () => SERVER);
    }
}
