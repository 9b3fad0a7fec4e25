# What is noted in a run, and what it comes to afterwards. In the window an operation leaves its time,
# as four bytes, and nothing else unless its answer was another one than was expected.
package Recorder;
use v5.36;

use Timeline;
use Histogram;
use Verify;
use List::Util qw(pairs sum0);
use Operation;

use constant BATCH => 1 << 16;

sub new ($class, $ops, $timeline) {
    return bless {
        timeline => $timeline, batches => [], ends => [],
        ops  => $ops, took => '', odd => [], played => 0, failed => 0, waits => [], lag => [], queued => 0, unsent => 0,
        left => {}, barriers => 0, sent_s => 0, ended_s => 0, cpu_ns => 0,
        system_ns => 0, sums => {}, service => {}, response => {},
    }, $class;
}

# Note a batch: times in s, then positions in it with what their answers come to.
sub note ($self, $n, $took, $odd) {
    $self->{took} .= pack "f$n", $n == 1 ? $took->[0] : @$took;
    if (@$odd) {
        for my $pair (pairs @$odd) {
            push $self->{odd}->@*, $self->{played} + $pair->[0], $pair->[1];
            $self->{failed}++ if $pair->[1] < 0;
        }
        @$odd = ();
    }
    $self->{played} += $n;
}

# The batch that was noted last lasted from one instant to another.
sub lasted ($self, $from_s, $to_s) {
    push $self->{batches}->@*, [$self->{played}, $from_s, $to_s] if $self->{timeline};
}

# When operations ended: what a batch took besides its calls is spread evenly over them.
sub ends ($self, $first, $took) {
    return $self->{ends}->@[$first .. $first + $#$took] if $self->{ends}->@*;
    my @ends;
    for my $position ($first .. $first + $#$took) {
        my $batch = $self->{batch};
        if (!$batch || $position >= $batch->{last}) {
            my ($last, $from_s, $to_s) = (shift $self->{batches}->@*)->@*;
            my $count  = $last - $position;
            my $rest_s = $to_s - $from_s - sum0 unpack 'f*', substr $self->{took}, 4 * $position, 4 * $count;
            $batch = $self->{batch} = {last => $last, at => $from_s, gap => $rest_s / $count};
        }
        push @ends, $batch->{at} += $took->[$position - $first] + $batch->{gap};
    }
    return @ends;
}

# Count everything. `$tick` is called now and then: this may take a second.
sub count ($self, $timeout_s, $tick) {
    my ($ops, $odd, $played) = @$self{qw(ops odd played)};
    for (my $first = 0; $first < $played; $first += BATCH) {
        my @took = unpack 'f*', substr $self->{took}, 4 * $first, 4 * BATCH;
        my %odd;
        while (@$odd && $odd->[0] < $first + @took) {
            my ($position, $code) = splice @$odd, 0, 2;
            $odd{$position} = $code;
        }
        my @ends = $self->{timeline} ? $self->ends($first, \@took) : ();
        $self->add($first + $_, $took[$_], $odd{ $first + $_ }, $timeout_s, $ends[$_]) for 0 .. $#took;
        $tick->();
    }
    while (my ($kind, $waits) = each $self->{left}->%*) {
        $self->sums($kind);
        $self->{response}{$kind}[Histogram::place(1e9 * $_)]++ for @$waits;
        $self->{timeline}->waited($_) for $self->{timeline} ? @$waits : ();
    }
}

sub sums ($self, $kind) {
    return $self->{sums}{$kind} //= {
        map({ $_ => 0 } qw(attempts ok hits misses not_stored wrong_values keys value_bytes key_bytes busy_ns)), errors => {},
    };
}

sub add ($self, $position, $took_s, $code, $timeout_s, $end_s) {
    my $op   = $self->{ops}[$position % $self->{ops}->@*];
    my $kind = $op->[KIND];
    my $sum  = $self->{sums}{$kind} // $self->sums($kind);
    $code //= $op->[CODE];
    $code = TIMEOUT if $took_s >= $timeout_s;
    $sum->{attempts}++;
    if ($code >= 0 || $code == TIMEOUT) {
        $self->{service}{$kind}[Histogram::place(1e9 * $took_s)]++;
        my $waited_s = $self->{waits}[$position];
        $self->{response}{$kind}[Histogram::place(1e9 * $waited_s)]++ if defined $waited_s;
        $self->{timeline}->note($end_s, $waited_s // $took_s, $code >= 0) if defined $end_s;
    }
    if ($code < 0) {
        $code == WRONG_VALUE ? $sum->{wrong_values}++ : $sum->{errors}{ $ERRORS{$code} }++;
        return;
    }
    my ($keys, $found) = (scalar $op->[KEYS]->@*, $code & FOUND_MASK);
    $sum->{ok}++;
    $sum->{keys}        += $keys;
    $sum->{key_bytes}   += $op->[KEY_BYTES];
    $sum->{value_bytes} += $code >> SIZE_BIT;
    $sum->{busy_ns}     += 1e9 * $took_s;
    $sum->{not_stored}++ if $code & REFUSED;
    if ($LOOKS_UP{$kind}) {
        $sum->{hits}   += $found;
        $sum->{misses} += $keys - $found;
    }
}

# By kind, as it is sent.
sub operations ($self) {
    my %message;
    while (my ($kind, $sum) = each $self->{sums}->%*) {
        my $service  = encoded($self->{service}{$kind});
        my $response = $self->{lag}->@* || $self->{unsent} ? encoded($self->{response}{$kind}) : $service;
        $message{$kind} = {%$sum, busy_ns => int $sum->{busy_ns}, service => $service, response => $response};
    }
    return \%message;
}

sub lag ($self) {
    my $counts = [];
    $counts->[Histogram::place(1e9 * $_)]++ for $self->{lag}->@*;
    return encoded($counts);
}

sub encoded ($counts) {
    return $counts && Histogram::encode($counts);
}

1;
