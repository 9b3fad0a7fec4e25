# The result of a library's answer, as one number.
#
# 0 or more: the operation is done; the low 16 bits are the keys found, the next one says that the
# server refused to store, the bits above are the value bytes read or written. Negative: it failed.
package Verify;
use v5.36;

use Exporter 'import';
use Operation;

our @EXPORT = qw(WRONG_VALUE TIMEOUT CONNECTION SERVER CLIENT PROTOCOL REFUSED FOUND_MASK SIZE_BIT wrong %ERRORS %LOOKS_UP ok_code);

use constant { WRONG_VALUE => -1, TIMEOUT => -2, CONNECTION => -3, SERVER => -4, CLIENT => -5, PROTOCOL => -6 };
use constant { FOUND_MASK => (1 << 16) - 1, REFUSED => 1 << 16, SIZE_BIT => 17 };

our %ERRORS = (
    TIMEOUT, 'timeout', CONNECTION, 'connection', SERVER, 'server', CLIENT, 'client', PROTOCOL, 'protocol',
);
# Kinds that have hits and misses.
our %LOOKS_UP = map { $_ => 1 } qw(get gets mget gat cas delete touch incr decr);

# The result of a right operation, with `size` bytes read or written.
sub ok_code ($kind, $size, $keys) {
    return $size << SIZE_BIT | ($LOOKS_UP{$kind} ? $keys : 0);
}

# The forms of an answer. `$got` is the call's result. First a test of the right answer, as text for the
# loop; then the verifier of any other, which gets the client, the operation and `$got`.
our %FORMS = (
    value     => ['defined $got && $got eq $value', \&value],                   # the value or undef
    versioned => ['$got && $got->[1] eq $value', sub ($c, $op, $got) { value($c, $op, $got && $got->[1]) }],
    values    => ['0', \&values],                                               # a hash by key
    stored    => ['$got', sub ($c, $op, $got) { $c->failed($op, $got) || SERVER }],
    accepted  => ['$got', sub ($c, $op, $got) { $c->failed($op, $got) || REFUSED }],
    each      => ['0', \&each_one],                                             # a hash by key
    known     => ['$got', sub ($c, $op, $got) { $c->failed($op, $got) }],       # whether the key was there
    number    => ['defined $got && $got =~ /^[0-9]+$/a', sub ($c, $op, $got) { $c->failed($op, $got) }],
    code      => ['$got == $code', sub ($c, $op, $got) { $got }],               # verified by the client already
    none      => ['1', undef],                                                  # nothing is known
);

# A value that was read, at any length that a write has.
sub value ($client, $op, $got) {
    return $client->failed($op, $got) unless defined $got;
    return right($client, $op->[NUMBERS][0], $got, $op->[GENERATION]) ? length($got) << SIZE_BIT | 1 : wrong($client, $got);
}

sub values ($client, $op, $got) {
    my ($hits, $size) = (0, 0);
    my ($keys, $numbers) = @$op[KEYS, NUMBERS];
    for my $i (0 .. $#$keys) {
        my $value = $got->{ $keys->[$i] } // next;
        return wrong($client, $value) unless right($client, $numbers->[$i], $value, $i ? 0 : $op->[GENERATION]);
        $hits++;
        $size += length $value;
    }
    return wrong($client, '') if $hits < grep { defined } CORE::values %$got;                # a key that the call did not ask for
    my $failed = $hits < @$keys ? $client->failed($op, undef) : 0;
    return $failed || ($size << SIZE_BIT | $hits);
}

# A batch of writes: every one must be stored.
sub each_one ($client, $op, $got) {
    my @failed = grep { !$got->{$_} } $op->[KEYS]->@*;
    return @failed ? $client->failed($op, $got->{ $failed[0] }) || SERVER : $op->[CODE];
}

# A wrong value, which a call log has.
sub wrong ($client, $value) {
    $client->{wrong} = $value;
    return WRONG_VALUE;
}

sub right ($client, $number, $value, $told = 0) {
    my $tape = $client->{tape};
    return !$tape->{verified} || $tape->allows($number, $value, $told);
}

1;
