# Generations: different values of a key, which show whose write a read has brought. Its subs are methods of a tape.
package Generations;
use v5.36;

use Exporter 'import';
use List::Util qw(any);

our @EXPORT_OK = qw(value allows begins may_have_flags);

my %WITH_GENERATION = map { $_ => 1 } qw(set get gets gat mget);

# The generations that a read may bring, by the generation in its record.
my @RIGHT = ([0 .. 3], [1 .. 3], [2, 1], [3, 1]);

# Whether a record of a verb may have these flags; `$quiet`: the verb may have no reply.
sub may_have_flags ($self, $verb, $flags, $quiet) {
    return 0 if $flags & 1 && !$quiet;
    return $flags < 2 || $self->{lanes} && $RIGHT[$flags >> 1] && $WITH_GENERATION{$verb};
}

# A phase begins: a second prefill means that the first failed, and its writes may still arrive.
sub begins ($self, $prefill) {
    $self->{any_generation} = 1 if $prefill && $self->{prefilled};
    $self->{prefilled} ||= $prefill;
}

# The value of a key at a length, in a generation; undef if there can be none.
sub value ($self, $key, $length, $generation = 0) {
    my $bytes = length $self->{pool};
    return undef if $length > $bytes;
    return substr $self->{pool}, ($key * 786433 + $length * 97 + $generation * 262147) % ($bytes - $length + 1), $length;
}

# Whether a read may bring a value; `$told` is the generation in its record. Once an operation has failed, or if the
# tape's generations do not hold for this way to play it, a read may bring any: `any_generation`.
sub allows ($self, $key, $value, $told) {
    my @right = $self->{lanes} ? $RIGHT[$self->{any_generation} ? 0 : $told]->@* : 0;
    return any { $value eq ($self->value($key, length $value, $_) // return 0) } @right;
}

1;
