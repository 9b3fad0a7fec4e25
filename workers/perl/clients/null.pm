# null: no library. It measures the loop's own cost. It remembers nothing: what
# the prefill stores is there, and nothing else.
package Client::Null;
use v5.36;
use parent -norequire, 'Client';

use Operation;
use Tape qw(every_kind);

use constant LIBRARY => 'none';
sub WIRES ($class)        { 'none' }
sub VERSION_TEXT ($class) { '0' }

# An operation's keys determine its result, which is stored for the loop: see `field`.
my %CALLS = (
    map({ $_ => ['$value',  'value'] } qw(get gets gat)),
    map({ $_ => ['$amount', 'stored'] } qw(set mset version)),
    map({ $_ => ['$amount', 'accepted'] } qw(add replace)),
    map({ $_ => ['$amount', 'known'] } qw(delete touch incr decr)),
    mget => ['$items',  'values'],
    cas  => ['$amount', 'code'],
);

sub calls ($class) {
    return {map { $_ => $CALLS{$_} // ['$amount', 'none'] } every_kind()};
}

sub field ($self, $name, $op) {
    my ($kind, $numbers) = @$op[KIND, NUMBERS];
    my @there = grep { $numbers->[$_] < $self->{tape}{prefill_count} } 0 .. $#$numbers;
    if ($name eq 'items') {
        my @values = $self->{tape}->values_of($op);
        return {map { $op->[KEYS][$_] => $values[$_] } @there};
    }
    return @there ? $self->SUPER::field($name, $op) : undef if $name eq 'value';
    return $self->SUPER::field($name, $op) if $name ne 'amount';
    return @there          ? $op->[CODE] : 0 if $kind eq 'cas';
    return $kind eq 'add'  ? !@there : $kind =~ /^(?:set|mset|version)$/ || !!@there;
}

1;
