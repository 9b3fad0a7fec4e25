# chi: CHI with its driver Memory, a cache in this process; or RawMemory, which copies no references. No
# server. It has no add, replace, touch and counters, and does not say whether a key that it removes was
# there.
package Client::Chi;
use v5.36;
use parent -norequire, 'Client';

use Operation;

use constant { LIBRARY => 'CHI', MODULE => 'CHI', PACKAGE => 'libchi-perl' };
sub WIRES ($class)   { 'none' }
sub OPTIONS ($class) { (driver => 'Memory|RawMemory') }

sub calls ($class) {
    return {
        get  => ['$cache->get($key)',                   'value'],
        mget => ['$cache->get_multi_hashref($keys)',    'values'],
        set  => ['$cache->set($key, $value, $exptime)', 'none'],
        mset => ['$cache->set_multi(@{$items})',        'none'],
    };
}

sub connect ($self) {
    $self->{cache} = CHI->new(driver => $self->option('driver', 'Memory'), global => 0);
}

sub refuse ($class, $setup, $tape) {
    return $tape->{repeats} && $tape->{kinds}{mset} ? 'a batch of sets that names a key twice: the library takes a hash' : undef;
}

sub field ($self, $name, $op) {
    my $exptime = $op->[EXPTIME] || 'never';
    return $exptime if $name eq 'exptime';
    return $self->SUPER::field($name, $op) if $name ne 'items';
    my @values = $self->{tape}->values_of($op);
    return [{map { $op->[KEYS][$_] => $values[$_] } 0 .. $#values}, $exptime];
}

1;
