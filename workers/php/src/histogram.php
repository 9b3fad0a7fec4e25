<?php
// HdrHistogram, V2 compressed: 1 ns to 100 s, 3 significant digits. A count has its place by its
// value's leading 11 bits.

declare(strict_types=1);

final class Histogram
{
    public const HIGHEST_NS = 100_000_000_000;
    /** Places in a histogram: 28 times half of 2048. */
    public const PLACES = 28 * 1024;
    private const V2 = 0x1C849313;
    private const V2_COMPRESSED = 0x1C849314;

    /** By how many bits a value shifts to its leading 11: a table by `value >> 11`. @return list<int> */
    public static function shifts(): array
    {
        $shifts = [0];
        for ($high = 1; $high < 4096; $high++) {
            $shifts[] = strlen(decbin($high));
        }
        return $shifts;
    }

    /** The same for a value beyond the table. */
    public static function shift(int $valueNs): int
    {
        return $valueNs < 2048 ? 0 : strlen(decbin($valueNs >> 11));
    }

    public static function place(int $valueNs): int
    {
        $valueNs = max(1, min($valueNs, self::HIGHEST_NS));
        $shift = self::shift($valueNs);
        return ($shift << 10) + ($valueNs >> $shift);
    }

    /** Counts by place as they travel; null if there are none. @param array<int, int> $counts */
    public static function encode(array $counts): ?string
    {
        if (!$counts) {
            return null;
        }
        ksort($counts);
        $body = '';
        $expected = 0;
        foreach ($counts as $place => $count) {
            $body .= $place > $expected ? self::zigzag($expected - $place) : '';
            $body .= self::zigzag($count);
            $expected = $place + 1;
        }
        $head = pack('N4J2E', self::V2, strlen($body), 0, 3, 1, self::HIGHEST_NS, 1.0);
        $packed = gzcompress($head . $body);
        return base64_encode(pack('NN', self::V2_COMPRESSED, strlen($packed)) . $packed);
    }

    /** A number as zigzag LEB128. */
    private static function zigzag(int $number): string
    {
        $left = $number << 1 ^ $number >> 63;
        for ($bytes = ''; $left > 127; $left >>= 7) {
            $bytes .= chr($left & 127 | 128);
        }
        return $bytes . chr($left);
    }
}
