<?php
// apcu: a cache in memory that the lanes share, as a web server's PHP processes do. No server, no
// wire. Counters are stored as the integers that apcu_inc wants.
//
// How much memory there is can only be given when PHP starts, so another `shm_size` than the one
// in worker.toml starts this process again.

declare(strict_types=1);

final class Client extends Session
{
    public const LIBRARY = 'apcu';
    public const EXTENSION = 'apcu';
    public const PACKAGE = 'php8.2-apcu';
    public const WIRES = ['none'];
    public const OPTIONS = ['shm_size' => '[1-9][0-9]*[KMG]'];
    private const COMMON_SIZE = '1024M';
    private const DEFAULT_SIZE = '32M';

    public static function absent(): string
    {
        return apcu_enabled() ? '' : 'APCu is off: PHP was started without -d apc.enable_cli=1';
    }

    /** A new trial begins with an empty cache. */
    public static function restart(Setup $setup, array $request): void
    {
        $size = $setup->option('shm_size', $setup->common() ? self::COMMON_SIZE : self::DEFAULT_SIZE);
        if ($size !== ini_get('apc.shm_size')) {
            $settings = ['apc.enable_cli=1', "apc.shm_size=$size", 'memory_limit=-1', 'display_errors=stderr'];
            $words = array_merge(...array_map(static fn ($setting) => ['-d', $setting], $settings));
            $environment = ['CACHEMARK_REQUEST' => json_encode($request)] + getenv();
            pcntl_exec(PHP_BINARY, [...$words, ...$GLOBALS['argv']], $environment);
            throw new Unsupported("apcu: PHP does not start with a memory of $size");
        }
        apcu_clear_cache();
    }

    private static function stored(Operation $op): string|int
    {
        return $op->counter ? (int) $op->value : $op->value;
    }

    public function get(Operation $op): void
    {
        $judge = fn ($value) => is_string($value) ? $this->judge->found($value, $op) : 0;
        $this->calls($op, apcu_fetch(...), [$op->key], $op->value, $judge);
    }

    public function mget(Operation $op): void
    {
        $judge = fn ($values) => is_array($values) ? $this->judge->foundMany($values, $op) : 0;
        $this->calls($op, apcu_fetch(...), [$op->keys], array_combine($op->keys, $op->values), $judge);
    }

    public function set(Operation $op): void
    {
        $this->calls($op, apcu_store(...), [$op->key, self::stored($op), $op->exptimeS], true, static fn () => SERVER);
    }

    /** It answers the keys that it could not store. */
    public function mset(Operation $op): void
    {
        $values = array_combine($op->keys, $op->values);
        $this->calls($op, apcu_store(...), [$values, null, $op->exptimeS], [], static fn () => SERVER);
    }

    public function add(Operation $op): void
    {
        $judge = static fn () => Judge::done($op) | REFUSED;
        $this->calls($op, apcu_add(...), [$op->key, self::stored($op), $op->exptimeS], true, $judge);
    }

    public function delete(Operation $op): void
    {
        $this->calls($op, apcu_delete(...), [$op->key], true, static fn () => 0);
    }

    /** apcu_inc would create a key that is not there; whether it was is asked first. */
    private function step(Operation $op, Closure $step): void
    {
        $call = static fn (string $key, int $amount) => apcu_exists($key) ? $step($key, $amount) : null;
        $judge = static fn ($number) => is_int($number) ? Judge::done($op) : ($number === null ? 0 : SERVER);
        $this->calls($op, $call, [$op->key, $op->amount], self::JUDGED, $judge);
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
