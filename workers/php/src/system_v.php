<?php
// Memory and semaphores of the kernel (System V) that outlive a killed owner. Their key has the owner's process
// id, so that the next worker finds the leftovers of dead owners, but not the memory of other programs or of a
// living worker.

declare(strict_types=1);

final class SystemV
{
    /** Functions of the C library that a client must declare for its FFI. */
    public const FUNCTIONS = 'int shmget(int, size_t, int); int shmctl(int, int, void *); int semctl(int, int, int, ...);';
    private const REMOVE = 0; // IPC_RMID
    private const LAST_PROCESS = 11; // GETPID
    private const VALUE = 12; // GETVAL
    /** The upper bits of a key; below them, a process id has at most 22. */
    private const MARK = 0xC6;
    private const ID_BITS = 22;

    /** The key of this process's memory and semaphores. */
    public static function key(): int
    {
        return self::MARK << self::ID_BITS | getmypid();
    }

    /** Let the kernel free the memory of this process's key after its last user, even if all are killed. */
    public static function freeWhenUnused(FFI $library): void
    {
        $library->shmctl($library->shmget(self::key(), 0, 0), self::REMOVE, null);
    }

    /**
     * Remove the leftovers of dead owners: memory that no process uses, and sets of $count semaphores whose
     * number $users is the number of users plus one. Call it before this process creates its own.
     */
    public static function reap(FFI $library, int $count, int $users): void
    {
        foreach (self::left('sem') as ['semid' => $set, 'nsems' => $size, 'owner' => $owner]) {
            $ours = $size === $count && $library->semctl($set, $users, self::LAST_PROCESS) === $owner;
            if ($ours && $library->semctl($set, $users, self::VALUE) <= 1) {
                $library->semctl($set, 0, self::REMOVE);
            }
        }
        foreach (self::left('shm') as ['shmid' => $memory, 'nattch' => $attached, 'cpid' => $maker, 'owner' => $owner]) {
            if ($attached === 0 && $maker === $owner) {
                $library->shmctl($memory, self::REMOVE, null);
            }
        }
    }

    /** This user's rows of a kernel's table whose key names a dead owner. */
    private static function left(string $kind): array
    {
        $rows = @file("/proc/sysvipc/$kind", FILE_IGNORE_NEW_LINES) ?: [''];
        $names = self::words(array_shift($rows));
        $left = [];
        foreach ($rows as $text) {
            $row = array_combine($names, array_map('intval', self::words($text)));
            $row['owner'] = $row['key'] & (1 << self::ID_BITS) - 1;
            $marked = $row['key'] >> self::ID_BITS === self::MARK && $row['uid'] === posix_geteuid();
            // An earlier process may have had this one's id.
            if ($marked && ($row['owner'] === getmypid() || !self::lives($row['owner']))) {
                $left[] = $row;
            }
        }
        return $left;
    }

    /** Whether a process lives; a zombie does not. */
    private static function lives(int $process): bool
    {
        return preg_match('~^State:\s+[^ZX]~m', (string) @file_get_contents("/proc/$process/status")) === 1;
    }

    private static function words(string $line): array
    {
        return preg_split('~ +~', trim($line));
    }
}
