# HdrHistogram, V2 compressed: 1 ns to 100 s, 3 significant digits. A count has its place by the
# leading 11 bits of its value.
package Histogram;
use v5.36;

use Compress::Zlib ();
use MIME::Base64   ();

use constant HIGHEST_NS    => 100_000_000_000;
use constant V2            => 0x1c849313;
use constant V2_COMPRESSED => 0x1c849314;

# The shift in bits of a value to its leading 11: a table by `value >> 11`.
my @SHIFT = (0, map { length sprintf '%b', $_ } 1 .. 4095);

sub place ($ns) {
    $ns = $ns < 1 ? 1 : $ns > HIGHEST_NS ? HIGHEST_NS : int $ns;
    my $high  = $ns >> 11;
    my $shift = $SHIFT[$high] // length sprintf '%b', $high;
    return ($shift << 10) + ($ns >> $shift);
}

# Count many values by place.
sub count ($counts, $values_ns) {
    for my $value ($values_ns->@*) {
        my $ns    = $value < 1 ? 1 : $value > HIGHEST_NS ? HIGHEST_NS : int $value;
        my $high  = $ns >> 11;
        my $shift = $SHIFT[$high] // length sprintf '%b', $high;
        $counts->[($shift << 10) + ($ns >> $shift)]++;
    }
}

# The text of a histogram, from counts by place; undef if it is empty.
sub encode ($counts) {
    my ($body, $expected) = ('', 0);
    for my $place (grep { $counts->[$_] } 0 .. $#$counts) {
        $body .= zigzag($expected - $place) if $place > $expected;
        $body .= zigzag($counts->[$place]);
        $expected = $place + 1;
    }
    return undef if $body eq '';
    my $head   = pack 'N4 Q>2 d>', V2, length $body, 0, 3, 1, HIGHEST_NS, 1.0;
    my $packed = Compress::Zlib::compress($head . $body);
    return MIME::Base64::encode_base64(pack('N2', V2_COMPRESSED, length $packed) . $packed, '');
}

# A number as zigzag LEB128.
sub zigzag ($number) {
    my $left  = $number < 0 ? (-$number << 1) - 1 : $number << 1;
    my $bytes = '';
    while ($left > 127) {
        $bytes .= chr($left & 127 | 128);
        $left >>= 7;
    }
    return $bytes . chr $left;
}

1;
