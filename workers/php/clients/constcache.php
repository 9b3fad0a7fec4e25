<?php
// constcache: the store in C of the PHP 5 extension ConstCache, called over FFI. CACHEMARK_CONSTCACHE names a
// shared library that exports the functions of its header fastcache.h. An item never changes and never
// expires: `set` and `add` are both its add, and a `set` of an existing key fails.
//
// Its memory and its semaphores are the kernel's (System V). The parent creates them, and its children, the
// callers, use them. The kernel frees the memory after its last user, even if all are killed; then four
// semaphores stay, and the next worker of this client removes them.

declare(strict_types=1);

require_once __DIR__ . '/../src/system_v.php';

final class Client extends BaseClient
{
    public const LIBRARY = 'constcache';
    public const EXTENSION = 'FFI';
    public const PACKAGE = 'php-cli';
    public const WIRES = ['none'];
    public const OPTIONS = ['memory' => self::BYTES, 'hash_power' => '[1-9]|[12][0-9](?#1 to 29)'];
    public const REMEDY = 'CACHEMARK_CONSTCACHE=/path/of/a/shared/library of the C files of github.com/angelasong/ConstCache';
    private const VARIABLE = 'CACHEMARK_CONSTCACHE';
    private const MEMORY = '1g';
    private const HASH_POWER = '16'; // its own default
    private const LONGEST_KEY_BYTES = 254;
    private const FIRST_BUFFER_BYTES = 16 << 10;
    private const SLOT_BYTES = 8;
    private const SEMAPHORES = 4;
    /** The semaphore that counts the users. */
    private const USERS = 2;
    /** Positions in its statistics. */
    private const TOTAL_BYTES = 0;
    private const FREE_BYTES = 1;

    private static ?FFI $library = null;
    private static bool $open = false;

    private FFI\CData $item;
    private FFI\CData $itemPlace;
    private FFI\CData $key;
    private FFI\CData $value;
    private int $capacity;

    public static function libraryVersion(): string
    {
        return '0.4'; // the only version; the library itself does not report it
    }

    public static function absent(): string
    {
        try {
            self::library();
        } catch (RuntimeException | FFI\Exception $error) {
            return $error->getMessage();
        }
        return '';
    }

    /** A new trial begins with an empty store. */
    public static function restart(Prepare $setup, array $request): void
    {
        $library = self::library();
        self::destroy();
        SystemV::reap($library, self::SEMAPHORES, self::USERS);
        $settings = $library->new('settings');
        $library->fc_conf_init(FFI::addr($settings));
        $settings->semaphore_key = $settings->memory_key = SystemV::key();
        $settings->memory_bytes = ini_parse_quantity($setup->option('memory', self::MEMORY));
        $settings->hash_power = (int) $setup->option('hash_power', self::HASH_POWER);
        // The library does not check this: it would write its table beyond its memory.
        if (self::SLOT_BYTES << $settings->hash_power >= $settings->memory_bytes) {
            throw new Unsupported("constcache: no room for a table of 2^$settings->hash_power slots of 8 bytes");
        }
        if ($library->fc_init(FFI::addr($settings)) !== 0) {
            throw new Unsupported('constcache: no shared memory of this size');
        }
        self::$open = true;
        $parent = getmypid();
        register_shutdown_function(static fn () => getmypid() === $parent && self::destroy());
        SystemV::freeWhenUnused($library);
    }

    private static function destroy(): void
    {
        if (self::$open) {
            self::library()->fc_destroy();
            self::$open = false;
        }
    }

    /** The used part of its memory: items and hash table. */
    public static function storeBytes(): ?int
    {
        $found = self::library()->new('statistics');
        self::library()->fc_stat(FFI::addr($found));
        return $found->numbers[self::TOTAL_BYTES] - $found->numbers[self::FREE_BYTES];
    }

    protected function open(): void
    {
        $this->item = self::library()->new('item');
        $this->itemPlace = FFI::addr($this->item);
        $this->key = self::library()->new('char[' . self::LONGEST_KEY_BYTES . ']');
        $this->item->key = FFI::addr($this->key[0]);
        $this->makeRoom(self::FIRST_BUFFER_BYTES);
    }

    private function makeRoom(int $bytes): void
    {
        $this->value = self::library()->new("char[$bytes]");
        $this->capacity = $bytes;
    }

    /** It refuses an item that is too large, or if its memory is full. */
    public function failure(Throwable $error): int
    {
        return SERVER;
    }

    public function get(Operation $op): void
    {
        $verify = fn ($value) => is_string($value) ? $this->verify->found($value, $op) : 0;
        $this->calls($op, $this->read(...), [$op->key], $op->value, $verify);
    }

    public function set(Operation $op): void
    {
        $this->calls($op, $this->store(...), [$op->key, $op->value], 0, static fn () => SERVER);
    }

    public function add(Operation $op): void
    {
        $verify = fn () => is_string($this->read($op->key)) ? Verify::done($op) | REFUSED : SERVER;
        $this->calls($op, $this->store(...), [$op->key, $op->value], 0, $verify);
    }

    /** The value of a key, or false. */
    private function read(string $key): string|false
    {
        $this->name($key);
        $found = self::$library->fc_get($this->itemPlace) === 0;
        return $found ? FFI::string($this->item->value, $this->item->value_bytes) : false;
    }

    /** Store a value; 0 if that was done. */
    private function store(string $key, string $value): int
    {
        $this->name($key);
        $size = strlen($value);
        if ($size > $this->capacity) {
            $this->makeRoom($size);
        }
        FFI::memcpy($this->value, $value, $size);
        $this->item->value = FFI::addr($this->value[0]);
        $this->item->value_bytes = $size;
        return self::$library->fc_add($this->itemPlace);
    }

    private function name(string $key): void
    {
        $size = strlen($key);
        FFI::memcpy($this->key, $key, $size);
        $this->item->key_bytes = $size;
    }

    private static function library(): FFI
    {
        return self::$library ??= self::load((string) getenv(self::VARIABLE));
    }

    private static function load(string $path): FFI
    {
        if (!is_file($path)) {
            throw new RuntimeException(self::VARIABLE . ($path === '' ? ' is not set' : "=$path is no file"));
        }
        return FFI::cdef(
            SystemV::FUNCTIONS . '
            typedef struct { int semaphore_key, memory_key; size_t memory_bytes; int hash_power; } settings;
            typedef struct { char *key; unsigned char key_bytes; char *value; size_t value_bytes; int flags; } item;
            typedef struct { char version[16]; long numbers[10]; } statistics;
            void fc_conf_init(settings *);
            int fc_init(const settings *);
            int fc_destroy();
            int fc_add(const item *);
            int fc_get(item *);
            int fc_stat(statistics *);',
            $path,
        );
    }
}
