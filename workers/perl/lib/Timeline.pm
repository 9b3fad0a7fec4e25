# The timeline of a window: the operations that ended in each of a thousand slices; a hundred are a section. All of it
# is made after the window, from the instants that batches of operations began and ended at, at most
# 20 ms apart, and how long each operation took between them.
package Timeline;
use v5.36;

use Histogram;
use List::Util qw(max min);

use constant { SECTIONS => 10, SECTION_SLICES => 100 };
use constant SLICES => SECTIONS * SECTION_SLICES;

# Operations that end after a late open loop's window have slices too; the last has the rest.
use constant MAX_SLICES => 4 * SLICES;

# For a window of this length; a window that ends by a number of operations has no slices.
sub new ($class, $start_s, $duration_ms) {
    my $slice_ns = int(($duration_ms // 0) * 1e6 / SLICES);
    return $slice_ns ? bless {start_s => $start_s, slice_ns => $slice_ns, ok => [], response_ns => [], times => []}, $class : undef;
}

# Note an operation's end, whether it succeeded, and its response time.
sub note ($self, $end_s, $response_s, $is_ok) {
    my $slice = max 0, min MAX_SLICES - 1, int(1e9 * ($end_s - $self->{start_s}) / $self->{slice_ns});
    $self->{times}[section($slice)][Histogram::place(1e9 * $response_s)]++;
    return unless $is_ok;
    $self->{ok}[$slice]++;
    $self->{response_ns}[$slice] += 1e9 * $response_s;
}

# Note the wait of an operation that was never sent.
sub waited ($self, $waited_s) {
    $self->{times}[SECTIONS - 1][Histogram::place(1e9 * $waited_s)]++;
}

sub section ($slice) { return min int($slice / SECTION_SLICES), SECTIONS - 1 }

# The field of `done`.
sub timeline ($self) {
    return {
        slice_ns    => $self->{slice_ns}, ok => [map { $_ // 0 } $self->{ok}->@*],
        response_ns => [map { int($_ // 0) } $self->{response_ns}->@*],
    };
}

sub sections ($self) {
    my @ok = (0) x SECTIONS;
    $ok[section($_)] += $self->{ok}[$_] // 0 for 0 .. $#{ $self->{ok} };
    return {
        length_ns => $self->{slice_ns} * SECTION_SLICES, ok => \@ok,
        response  => [map { $_ && Histogram::encode($_) } $self->{times}->@[0 .. SECTIONS - 1]],
    };
}

1;
