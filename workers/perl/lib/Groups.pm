# The times of whole groups of the tape (docs/tape.md), from the records of a lane.
package Groups;
use v5.36;

use Histogram;

sub new ($class, $length) {
    return bless {length => $length, ok => 0, counts => [], whole => 0, counting => 1, began_s => 0}, $class;
}

# A part of a slice begins: a group that the last part has cut does not count.
sub begin_part ($self, $counting) {
    @$self{qw(counting whole)} = ($counting, 0);
}

# Note an operation of the lane by its position: its result, its begin and its duration.
sub note ($self, $position, $code, $began_s, $took_s) {
    my $place = $position % $self->{length};
    @$self{qw(began_s whole)} = ($began_s, $self->{counting}) if $place == 0;
    $self->{whole} = 0 if $code < 0;
    return unless $self->{whole} && $place == $self->{length} - 1;
    $self->{ok}++;
    $self->{counts}[Histogram::place(1e9 * ($began_s + $took_s - $self->{began_s}))]++;
}

# The message.
sub message ($self) {
    return {length => $self->{length}, ok => $self->{ok}, time => Histogram::encode($self->{counts})};
}

1;
