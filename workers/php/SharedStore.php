<?php
// A cache in shared memory, by name, for PHP programs: it stays when the process that made it ends, and
// every process that may read and write its file sees the same items. It is the library that
// cachemark_store.h declares, called over FFI; `cachemark setup php` builds both into `target/`.
//
//     SharedStore::init('shop', 64 << 20);      // once; or: cachemark-engine store init shop --memory 64m
//     $store = new SharedStore('shop');         // in each process
//     $store->add('greeting', ['hello' => 1], 60);
//     $store->get('greeting');                  // ['hello' => 1], for a minute
//     SharedStore::destroy('shop');             // the name; its memory is freed with its last user
//
// Strings are stored as they are, whole numbers as decimal text, and everything else serialized. To open a
// store of another user, name its owner; to get objects, name their classes.

declare(strict_types=1);

final class SharedStore
{
    /** An item's flags: what its bytes are. */
    private const TEXT = 0;
    private const WHOLE_NUMBER = 1;
    private const SERIALIZED = 2;

    private const ABI = 1;
    private const OK = 0;
    private const NOT_FOUND = 1;
    private const EXISTS = 2;
    private const BUFFER = 4;
    private const FIRST_BUFFER_BYTES = 16 << 10;

    private static ?FFI $library = null;

    private readonly FFI $ffi;
    private FFI\CData $store;
    private FFI\CData $buffer;
    private int $capacity;
    private readonly FFI\CData $length;
    private readonly FFI\CData $flags;
    private readonly FFI\CData $number;
    private readonly FFI\CData $lengthPlace;
    private readonly FFI\CData $flagsPlace;
    private readonly FFI\CData $numberPlace;

    /**
     * Open a store of this program's own user, or of the user with the number `$owner`. `get` makes objects
     * of `$allowedClasses` only, as unserialize() does: to make an object can run its code. Raises RuntimeException.
     *
     * @param bool|list<class-string> $allowedClasses
     */
    public function __construct(string $name, ?int $owner = null, private readonly bool|array $allowedClasses = false)
    {
        $this->ffi = $ffi = self::library();
        $opened = $ffi->new('cm_store *');
        $place = FFI::addr($opened);
        self::check($owner === null ? $ffi->cm_store_open($name, $place) : $ffi->cm_store_open_of($name, $owner, $place));
        $this->store = $opened;
        $this->length = $ffi->new('size_t');
        $this->flags = $ffi->new('uint32_t');
        $this->number = $ffi->new('uint64_t');
        $this->lengthPlace = FFI::addr($this->length);
        $this->flagsPlace = FFI::addr($this->flags);
        $this->numberPlace = FFI::addr($this->number);
        $this->makeRoom(self::FIRST_BUFFER_BYTES);
    }

    public function __destruct()
    {
        if (isset($this->store)) {
            $this->ffi->cm_store_close($this->store);
        }
    }

    /**
     * Make a store. `$hashPower`: its table has 2 to this power slots and never grows. Raises RuntimeException,
     * also if there is such a store.
     */
    public static function init(string $name, int $memoryBytes, ?int $hashPower = null, int $mode = 0600): void
    {
        self::check(self::library()->cm_store_init($name, $memoryBytes, $hashPower ?? -1, $mode));
    }

    /**
     * Remove a store's name; false if there is none. Programs that have it open keep it. `$owner`: its user, if that
     * is another.
     */
    public static function destroy(string $name, ?int $owner = null): bool
    {
        $ffi = self::library();
        $status = $owner === null ? $ffi->cm_store_destroy($name) : $ffi->cm_store_destroy_of($name, $owner);
        return self::check($status, self::NOT_FOUND) === self::OK;
    }

    /** The library's version. */
    public static function version(): string
    {
        return self::library()->cm_store_version();
    }

    /** The value of a key, or `$default` if there is none. */
    public function get(string $key, mixed $default = false): mixed
    {
        do {
            $status = $this->ffi->cm_store_get(
                $this->store, $key, strlen($key), $this->buffer, $this->capacity, $this->lengthPlace, $this->flagsPlace,
            );
            // Another process may have stored a longer value meanwhile.
        } while ($status === self::BUFFER && $this->makeRoom(2 * $this->length->cdata));
        if ($status !== self::OK) {
            self::check($status, self::NOT_FOUND);
            return $default;
        }
        $bytes = FFI::string($this->buffer, $this->length->cdata);
        return match ($this->flags->cdata) {
            self::TEXT => $bytes,
            self::WHOLE_NUMBER => self::number(rtrim($bytes)), // after a decrement there may be spaces
            self::SERIALIZED => unserialize($bytes, ['allowed_classes' => $this->allowedClasses]),
            default => throw new RuntimeException("the item has flags that SharedStore does not set: {$this->flags->cdata}"),
        };
    }

    /** Store a value. `$exptime` as in memcached: 0 is never, up to 30 days are seconds from now. */
    public function set(string $key, mixed $value, int $exptime = 0): bool
    {
        [$bytes, $flags] = is_string($value) ? [$value, self::TEXT] : self::encoded($value);
        self::check($this->ffi->cm_store_set(
            $this->store, $key, strlen($key), $bytes, strlen($bytes), $flags, $exptime,
        ));
        return true;
    }

    /** The same, if there is no such key; false if there is. */
    public function add(string $key, mixed $value, int $exptime = 0): bool
    {
        [$bytes, $flags] = is_string($value) ? [$value, self::TEXT] : self::encoded($value);
        $status = $this->ffi->cm_store_add(
            $this->store, $key, strlen($key), $bytes, strlen($bytes), $flags, $exptime,
        );
        return self::check($status, self::EXISTS) === self::OK;
    }

    /** Remove a key; false if there is none. */
    public function delete(string $key): bool
    {
        $status = $this->ffi->cm_store_delete($this->store, $key, strlen($key));
        return self::check($status, self::NOT_FOUND) === self::OK;
    }

    /**
     * Add to a whole number (it wraps at 2^64), or subtract (it stops at 0); false if there is no such key. A result
     * above PHP_INT_MAX is a string of digits.
     */
    public function incr(string $key, int $delta = 1): int|string|false
    {
        $status = $this->ffi->cm_store_incr($this->store, $key, strlen($key), $delta, $this->numberPlace);
        return self::check($status, self::NOT_FOUND) === self::OK ? self::number(sprintf('%u', $this->number->cdata)) : false;
    }

    /** Remove all items. */
    public function flush(): bool
    {
        return self::check($this->ffi->cm_store_flush($this->store)) === self::OK;
    }

    /** Numbers of the whole store. @return array<string, int> */
    public function stat(): array
    {
        $found = $this->ffi->new('cm_store_statistics');
        $found->size = FFI::sizeof($found);
        self::check($this->ffi->cm_store_stat($this->store, FFI::addr($found)));
        return [
            'items' => $found->items,
            'item_bytes' => $found->item_bytes,
            'table_bytes' => $found->table_bytes,
            'limit_bytes' => $found->limit_bytes,
            'evictions' => $found->evictions,
        ];
    }

    /** Write a line of JSON for each item to a new file. */
    public function dump(string $path, bool $values = true): bool
    {
        return self::check($this->ffi->cm_store_dump($this->store, $path, (int) $values)) === self::OK;
    }

    /** @return array{string, int} */
    private static function encoded(mixed $value): array
    {
        $number = is_int($value) && $value >= 0;
        return $number ? [(string) $value, self::WHOLE_NUMBER] : [serialize($value), self::SERIALIZED];
    }

    /** An int, or the digits of a number that is too large for one. */
    private static function number(string $digits): int|string
    {
        $number = (int) $digits;
        return (string) $number === $digits ? $number : $digits;
    }

    private function makeRoom(int $bytes): bool
    {
        $this->buffer = $this->ffi->new("char[$bytes]");
        $this->capacity = $bytes;
        return true;
    }

    /** Raise RuntimeException for any status except OK and `$allowed`. */
    private static function check(int $status, int $allowed = self::OK): int
    {
        if ($status !== self::OK && $status !== $allowed) {
            throw new RuntimeException(self::library()->cm_store_error());
        }
        return $status;
    }

    private static function library(): FFI
    {
        return self::$library ??= self::load(__DIR__ . '/target');
    }

    private static function load(string $folder): FFI
    {
        $header = @file_get_contents("$folder/cachemark_store.h");
        if ($header === false) {
            throw new RuntimeException('the library of the shared store is not built: cachemark setup php');
        }
        // FFI has no preprocessor.
        $declared = preg_replace(['/^#ifdef __cplusplus.*?^#endif/ms', '/^#.*$/m'], '', $header);
        $library = FFI::cdef($declared, "$folder/libcachemark_store.so");
        if ($library->cm_store_abi() !== self::ABI) {
            throw new RuntimeException('the library of the shared store is of another version: cachemark setup php');
        }
        return $library;
    }
}
