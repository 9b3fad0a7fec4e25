<?php
// apcu: a cache in memory that the lanes share, as a web server's PHP processes do. No server, no
// wire. Counters are stored as integers, which apcu_inc needs.
//
// The size of the memory (`shm_size`) and of the hash table (`entries_hint`, which APCu rounds up to a
// prime) can only be set when PHP starts, so other values restart this process. APCu empties its memory
// when it is full, so the profile `common` has room for a million values of 1 KB.

declare(strict_types=1);

final class Client extends BaseClient
{
    public const LIBRARY = 'apcu';
    public const EXTENSION = 'apcu';
    public const PACKAGE = 'php-apcu';
    public const WIRES = ['none'];
    public const OPTIONS = ['shm_size' => '[1-9][0-9]*[KMG](?#a size such as 512M)', 'entries_hint' => self::COUNT];
    private const COMMON = ['shm_size' => '2048M', 'entries_hint' => '4096'];
    private const AS_IT_COMES = ['shm_size' => '32M', 'entries_hint' => '4096'];

    public static function absent(): string
    {
        return apcu_enabled() ? '' : 'APCu is off: PHP was started without -d apc.enable_cli=1';
    }

    /** A new trial begins with an empty cache. */
    public static function restart(Prepare $setup, array $request): void
    {
        $wanted = [];
        foreach ($setup->common() ? self::COMMON : self::AS_IT_COMES as $name => $value) {
            $wanted["apc.$name"] = $setup->option($name, $value);
        }
        if ($wanted !== array_map(ini_get(...), array_combine(array_keys($wanted), array_keys($wanted)))) {
            $script = count($GLOBALS['argv']);
            $words = array_slice(explode("\0", rtrim((string) file_get_contents('/proc/self/cmdline'), "\0")), 1, -$script);
            foreach ($wanted as $name => $value) {
                array_push($words, '-d', "$name=$value");
            }
            $environment = ['CACHEMARK_REQUEST' => json_encode($request)] + getenv();
            pcntl_exec(PHP_BINARY, [...$words, ...$GLOBALS['argv']], $environment);
            throw new Unsupported('apcu: PHP does not start with ' . json_encode($wanted));
        }
        apcu_clear_cache();
    }

    /** The used part of its memory. */
    public static function storeBytes(): ?int
    {
        $memory = apcu_sma_info(true);
        return $memory ? (int) ($memory['num_seg'] * $memory['seg_size'] - $memory['avail_mem']) : null;
    }

    private static function stored(Operation $op): string|int
    {
        return $op->counter ? (int) $op->value : $op->value;
    }

    public function get(Operation $op): void
    {
        $verify = fn ($value) => is_string($value) ? $this->verify->found($value, $op) : 0;
        $this->calls($op, apcu_fetch(...), [$op->key], $op->value, $verify);
    }

    public function mget(Operation $op): void
    {
        $verify = fn ($values) => is_array($values) ? $this->verify->foundMany($values, $op) : 0;
        $this->calls($op, apcu_fetch(...), [$op->keys], array_combine($op->keys, $op->values), $verify);
    }

    public function set(Operation $op): void
    {
        $this->calls($op, apcu_store(...), [$op->key, self::stored($op), $op->exptimeS], true, static fn () => SERVER);
    }

    /** It returns the keys that it could not store. */
    public function mset(Operation $op): void
    {
        $values = array_combine($op->keys, $op->values);
        $this->calls($op, apcu_store(...), [$values, null, $op->exptimeS], [], static fn () => SERVER);
    }

    public function add(Operation $op): void
    {
        $verify = static fn () => Verify::done($op) | REFUSED;
        $this->calls($op, apcu_add(...), [$op->key, self::stored($op), $op->exptimeS], true, $verify);
    }

    public function delete(Operation $op): void
    {
        $this->calls($op, apcu_delete(...), [$op->key], true, static fn () => 0);
    }

    /** apcu_inc would create a missing key, so this asks first whether it is there. */
    private function step(Operation $op, Closure $step): void
    {
        $call = static fn (string $key, int $amount) => apcu_exists($key) ? $step($key, $amount) : null;
        $verify = static fn ($number) => is_int($number) ? Verify::done($op) : ($number === null ? 0 : SERVER);
        $this->calls($op, $call, [$op->key, $op->amount], self::VERIFIED, $verify);
    }

    public function incr(Operation $op): void
    {
        $this->step($op, apcu_inc(...));
    }

    public function decr(Operation $op): void
    {
        $this->step($op, apcu_dec(...));
    }
}
