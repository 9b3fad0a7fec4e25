<?php
// Memory and semaphores of the kernel (System V) that outlive a killed owner. Their key has the owner's process
// id, so that the next worker finds what dead owners left, and nothing else: not what other programs made, and
// not what a living worker uses.

declare(strict_types=1);

final class SystemV
{
    /** Functions of the C library that a client has to declare for its FFI. */
    public const FUNCTIONS = 'int shmget(int, size_t, int); int shmctl(int, int, void *); int semctl(int, int, int, ...);';
    private const REMOVE = 0; // IPC_RMID
    private const LAST_PROCESS = 11; // GETPID
    private const VALUE = 12; // GETVAL
    /** The upper bits of a key; below them, a process id has at most 22. */
    private const MARK = 0xC6;
    private const ID_BITS = 22;

    /** The key for what this process makes. */
    public static function key(): int
    {
        return self::MARK << self::ID_BITS | getmypid();
    }

    /** Memory under this process's key is freed when no process uses it any more, also if all users are killed. */
    public static function freeWhenUnused(FFI $library): void
    {
        $library->shmctl($library->shmget(self::key(), 0, 0), self::REMOVE, null);
    }

    /**
     * Remove what dead owners left: sets of $count semaphores of which number $users counts the users and one
     * more, and memory that no process uses. Call it before this process makes its own.
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

    /** This user's rows of a table of the kernel whose key names an owner that is gone. */
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

    /** Whether there is such a process; one that ended and was not waited for does not live. */
    private static function lives(int $process): bool
    {
        return preg_match('~^State:\s+[^ZX]~m', (string) @file_get_contents("/proc/$process/status")) === 1;
    }

    private static function words(string $line): array
    {
        return preg_split('~ +~', trim($line));
    }
}
