# The sums of operations by kind, for `done`, without times.
package Sums;
use v5.36;

use Operation;
use Verify;

sub none () {
    return {
        map({ $_ => 0 } qw(attempts ok hits misses not_stored wrong_values keys value_bytes key_bytes busy_ns)), errors => {},
    };
}

# A number of operations with the same result.
sub add ($sums, $op, $code, $times) {
    my $kind = $op->[KIND];
    my $sum  = $sums->{$kind} //= none();
    $sum->{attempts} += $times;
    if ($code < 0) {
        ($code == WRONG_VALUE ? $sum->{wrong_values} : $sum->{errors}{ $ERRORS{$code} }) += $times;
        return;
    }
    my ($keys, $found) = (scalar $op->[KEYS]->@*, $code & FOUND_MASK);
    $sum->{ok}          += $times;
    $sum->{keys}        += $times * $keys;
    $sum->{key_bytes}   += $times * $op->[KEY_BYTES];
    $sum->{value_bytes} += $times * ($code >> SIZE_BIT);
    $sum->{not_stored}  += $times if $code & REFUSED;
    if ($LOOKS_UP{$kind}) {
        $sum->{hits}   += $times * $found;
        $sum->{misses} += $times * ($keys - $found);
    }
}

1;
