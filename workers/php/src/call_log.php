<?php
// The call log of docs/call-log.md. The parent writes its header, and each lane adds its calls to the
// file as they end: a hanging lane could not pass them to the parent.

declare(strict_types=1);

final class CallLog
{
    private const MOST_RECORDS = 1 << 20;
    private const MOST_WRONG_REPLIES = 16;
    private const MOST_WRONG_BYTES = 4096;
    private const READS = ['get', 'gets', 'mget', 'gat'];
    private const OK = 0;
    private const MISS = 1;

    /** The first wrong values, as they are sent. @var list<array{record: int, value: string}> */
    public array $wrong = [];
    /** @var resource */
    private $file;
    private int $left;

    /** Begin a file: the parent's part. */
    public static function begin(string $path): void
    {
        if (file_put_contents($path, "CMCALLS\0" . pack('V2', 1, 32)) === false) {
            throw new RuntimeException("$path: cannot be written");
        }
    }

    /** The log of the lane `$lane` of `$lanes`, which has `$length` records in groups of `$group`. */
    public function __construct(
        string $path,
        private readonly int $group,
        private readonly int $lane,
        private readonly int $lanes,
        private readonly int $length,
    ) {
        $this->file = fopen($path, 'ab') ?: throw new RuntimeException("$path: cannot be written");
        $this->left = intdiv(self::MOST_RECORDS, $lanes);
    }

    /** Note the call of the lane's operation at a place. */
    public function note(int $place, Operation $op, int $code, mixed $answer, int $began, int $now): void
    {
        if ($this->left-- <= 0) {
            return;
        }
        $number = $this->numberAt($place);
        $size = $code < 0 ? 0 : $code >> SIZE_BIT;
        fwrite($this->file, pack('P2V2vCx5', $began, $now - $began, $number, $size, $this->lane & 0xffff, self::outcome($op, $code)));
        if ($code === WRONG && count($this->wrong) < self::MOST_WRONG_REPLIES) {
            $value = is_string($answer) ? $answer : var_export($answer, true);
            $this->wrong[] = ['record' => $number, 'value' => base64_encode(substr($value, 0, self::MOST_WRONG_BYTES))];
        }
    }

    /** The first wrong values of all lanes. @param list<list<array{record: int, value: string}>> $lanes @return list<array{record: int, value: string}> */
    public static function wrongReplies(array $lanes): array
    {
        return array_slice(array_merge(...$lanes), 0, self::MOST_WRONG_REPLIES);
    }

    /** The number on the tape of the lane's operation at a place. */
    private function numberAt(int $place): int
    {
        $at = $place % $this->length;
        return (intdiv($at, $this->group) * $this->lanes + $this->lane) * $this->group + $at % $this->group;
    }

    /** The outcomes of failures have the order of the codes. */
    private static function outcome(Operation $op, int $code): int
    {
        if ($code < 0) {
            return 1 - $code;
        }
        return in_array($op->kind, self::READS, true) && ($code & FOUND_MASK) === 0 ? self::MISS : self::OK;
    }
}
