<?php
// JSON lines over a stream: between the orchestrator and this worker, and between the worker and
// its lanes.

declare(strict_types=1);

final class Messages
{
    /** Whether the other end is gone. */
    public bool $ended = false;
    private string $rest = '';

    /** @param resource $in @param resource $out */
    public function __construct(public readonly mixed $in, private readonly mixed $out)
    {
        stream_set_blocking($in, false);
        stream_set_read_buffer($in, 0);
    }

    /** @param array<string, mixed> $message */
    public function send(array $message): void
    {
        $line = json_encode($message, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE) . "\n";
        while ($line !== '') {
            $sent = @fwrite($this->out, $line);
            if ($sent === false || $sent === 0) {
                [$read, $write, $except] = [null, [$this->out], null];
                if ($this->ended || @stream_select($read, $write, $except, 5) !== 1) {
                    $this->ended = true; // the other end is gone
                    return;
                }
                continue;
            }
            $line = substr($line, $sent);
        }
    }

    /** The messages so far; never waits. A line that is no message comes as its text. @return list<array<string, mixed>> */
    public function poll(): array
    {
        while (($chunk = fread($this->in, 1 << 16)) !== false && $chunk !== '') {
            $this->rest .= $chunk;
        }
        $this->ended = $this->ended || feof($this->in);
        $lines = explode("\n", $this->rest);
        $this->rest = array_pop($lines);
        return array_map(self::message(...), array_filter($lines, static fn ($line) => trim($line) !== ''));
    }

    /** The next messages; waits for them until a time-out, or for ever. @return list<array<string, mixed>> */
    public function wait(): array
    {
        while (!$this->ended) {
            [$read, $write, $except] = [[$this->in], null, null];
            @stream_select($read, $write, $except, null);
            if ($messages = $this->poll()) {
                return $messages;
            }
        }
        return [];
    }

    /** @return array<string, mixed> */
    private static function message(string $line): array
    {
        $message = json_decode($line, true);
        $is = is_array($message) && is_string($message['type'] ?? null);
        return $is ? $message : ['type' => '', 'text' => substr(trim($line), 0, 120)];
    }
}
