<?php
// shared-store: cachemark's own store in shared memory, as a PHP program uses it (SharedStore.php). Each
// trial has a store of its own: the parent opens it and removes its name, and its children, the callers,
// use it. So even a killed worker leaves nothing behind.

declare(strict_types=1);

require_once __DIR__ . '/../SharedStore.php';

final class Client extends BaseClient
{
    public const LIBRARY = 'cachemark-shared-store';
    public const EXTENSION = 'FFI';
    public const PACKAGE = 'php-cli';
    public const WIRES = ['none'];
    public const OPTIONS = ['memory' => self::BYTES, 'hash_power' => self::COUNT];
    private const MEMORY = '1g';

    private static ?SharedStore $store = null;

    public static function libraryVersion(): string
    {
        return SharedStore::version();
    }

    public static function absent(): string
    {
        try {
            SharedStore::version();
        } catch (RuntimeException | FFI\Exception $error) {
            return $error->getMessage();
        }
        return '';
    }

    /** A new trial begins with an empty store. */
    public static function restart(Prepare $setup, array $request): void
    {
        $name = 'worker-' . getmypid();
        $hashPower = isset($setup->options['hash_power']) ? (int) $setup->options['hash_power'] : null;
        self::$store = null;
        try {
            SharedStore::init($name, ini_parse_quantity($setup->option('memory', self::MEMORY)), $hashPower);
            self::$store = new SharedStore($name);
        } catch (RuntimeException $error) {
            throw new Unsupported("shared-store: {$error->getMessage()}");
        } finally {
            SharedStore::destroy($name);
        }
    }

    /** Items and hash table. */
    public static function storeBytes(): ?int
    {
        $found = self::$store->stat();
        return $found['item_bytes'] + $found['table_bytes'];
    }

    /** An exception of the store is a refusal: there is no server, and no connection. */
    public function failure(Throwable $error): int
    {
        return SERVER;
    }

    public function get(Operation $op): void
    {
        $verify = fn ($value) => is_string($value) ? $this->verify->found($value, $op) : 0;
        $this->calls($op, self::$store->get(...), [$op->key], $op->value, $verify);
    }

    public function set(Operation $op): void
    {
        $this->calls($op, self::$store->set(...), [$op->key, $op->value, $op->exptimeS], true, static fn () => SERVER);
    }

    public function add(Operation $op): void
    {
        $verify = static fn () => Verify::done($op) | REFUSED;
        $this->calls($op, self::$store->add(...), [$op->key, $op->value, $op->exptimeS], true, $verify);
    }

    public function delete(Operation $op): void
    {
        $this->calls($op, self::$store->delete(...), [$op->key], true, static fn () => 0);
    }

    private function step(Operation $op, int $delta): void
    {
        $verify = static fn ($number) => is_int($number) ? Verify::done($op) : 0;
        $this->calls($op, self::$store->incr(...), [$op->key, $delta], self::VERIFIED, $verify);
    }

    public function incr(Operation $op): void
    {
        $this->step($op, $op->amount);
    }

    public function decr(Operation $op): void
    {
        $this->step($op, -$op->amount);
    }
}
