# Generations: the values of a key that show which write a read has brought. Its subs are methods of a tape.
package Generations;
use v5.36;

use Exporter 'import';
use List::Util qw(any);

our @EXPORT_OK = qw(value allows begins may_have_flags);

my %WITH_GENERATION = map { $_ => 1 } qw(set get gets gat mget);

# By the generation that the record of a read tells: those that it may bring.
my @RIGHT = ([0 .. 3], [1 .. 3], [2, 1], [3, 1]);

# Whether a record of a verb may have these flags; `$quiet`: it may be without a reply.
sub may_have_flags ($self, $verb, $flags, $quiet) {
    return 0 if $flags & 1 && !$quiet;
    return $flags < 2 || $self->{lanes} && $RIGHT[$flags >> 1] && $WITH_GENERATION{$verb};
}

# A phase begins: a prefill that comes once more has failed before, and what it sent may still come.
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

# Whether a read may bring a value; `$told` is the generation of its record. Once an operation has failed, or if the
# tape's generations are for another way to play it, a read may bring any: `any_generation`.
sub allows ($self, $key, $value, $told) {
    my @right = $self->{lanes} ? $RIGHT[$self->{any_generation} ? 0 : $told]->@* : 0;
    return any { $value eq ($self->value($key, length $value, $_) // return 0) } @right;
}

1;
