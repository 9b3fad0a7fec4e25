# The records of a run, and their sums afterwards. In the window an operation records its duration in
# four bytes, and nothing else unless its answer was unexpected.
package Recorder;
use v5.36;

use Groups;
use Timeline;
use Histogram;
use Sums;
use Verify;
use List::Util qw(max min pairs sum0);
use Operation;

use constant BATCH => 1 << 16;

sub new ($class, $ops, $group, $timeline) {
    return bless {
        timeline => $timeline, batches => [], ends => [],

        # Positions at which the operations go on at another place of the lane, and whether they count from there.
        parts => [[0, 0, 1]], lead_in => {},
        ops  => $ops, groups => $group > 1 && Groups->new($group), begins => '', took => '', odd => [], played => 0, failed => 0, waits => [], lag => [], queued => 0, unsent => 0,
        done => [], left => {}, barriers => 0, renewed => 0, sent_s => 0, ended_s => 0, cpu_ns => 0,
        system_ns => 0, sums => {}, service => {}, response => {},
    }, $class;
}

# Record a batch: positions with the results of their answers, times in s, and begins if groups are timed.
sub note ($self, $n, $odd, $took, $begins = undef) {
    $self->{begins} .= pack "d$n", $n == 1 ? $begins->[0] : @$begins if $self->{groups};
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

# Set the begin and the end of the last batch.
sub lasted ($self, $from_s, $to_s) {
    push $self->{batches}->@*, [$self->{played}, $from_s, $to_s] if $self->{timeline};
}

# Record an operation that was due and will not be sent: it waited at least this time.
sub unsent ($self, $op, $waited_s) {
    $self->{unsent}++;
    push $self->{left}{ $op->[KIND] }->@*, $waited_s;
}

# CPU time between two instants.
sub add_usage ($self, $before, $after) {
    $self->{ (qw(cpu_ns system_ns))[$_] } += 1e9 * ($after->[$_] - $before->[$_]) for 0, 1;
}

# The number of operations from a position on that lasted too long, but did not fail otherwise.
sub late ($self, $first, $timeout_s) {
    my @took = unpack 'f*', substr $self->{took}, 4 * $first;
    return 0 if max(0, @took) < $timeout_s;
    my %code = $self->{odd}->@*;
    return scalar grep { $took[$_] >= $timeout_s && ($code{ $first + $_ } // 0) >= 0 } 0 .. $#took;
}

# The begins of operations, if groups are timed.
sub begins ($self, $first, $count) {
    return $self->{groups} ? unpack 'd*', substr $self->{begins}, 8 * $first, 8 * $count : ();
}

# The ends of operations: the time of a batch outside of its calls is spread evenly over them.
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

# Count everything. Calls `$tick` now and then, since this may take a second.
sub count ($self, $timeout_s, $tick) {
    my @parts = $self->{parts}->@*;
    while (my $part = shift @parts) {
        my ($first, $turn, $counted) = @$part;
        my $last = @parts ? $parts[0][0] : $self->{played};
        $self->{groups}->begin_part($counted) if $self->{groups};
        for (; $first < $last; $first += BATCH) {
            my @took = unpack 'f*', substr $self->{took}, 4 * $first, 4 * min(BATCH, $last - $first);
            $self->count_batch($first, $turn, $counted, \@took, $timeout_s);
            $turn += @took;
            $tick->();
        }
    }
    for my $counted (0, 1) {
        my $sums = $self->{ $counted ? 'sums' : 'lead_in' };
        my $done = $self->{done}[$counted];
        Sums::add($sums, $self->{ops}[$_], $self->{ops}[$_][CODE], $done->[$_]) for grep { $done->[$_] } 0 .. $#$done;
    }
    while (my ($kind, $waits) = each $self->{left}->%*) {
        $self->{sums}{$kind} //= Sums::none();
        Histogram::count($self->{response}{$kind} //= [], [map { 1e9 * $_ } @$waits]);
        $self->{timeline}->waited($_) for $self->{timeline} ? @$waits : ();
    }
}

# Count operations that follow each other. An expected answer is only counted by its position.
sub count_batch ($self, $first, $turn, $counted, $took, $timeout_s) {
    my ($ops, $odd, $timeline, $groups) = @$self{qw(ops odd timeline groups)};
    my $sums = $self->{ $counted ? 'sums' : 'lead_in' };
    my $done = $self->{done}[$counted] //= [];
    my %odd;
    while (@$odd && $odd->[0] < $first + @$took) {
        my ($position, $code) = splice @$odd, 0, 2;
        $odd{$position} = $code;
    }
    my @begins = $self->begins($first, scalar @$took);
    my @ends   = $timeline ? $self->ends($first, $took) : ();
    my (%timed, %busy_s);    # by kind: places in the batch, and the time of successes
    for (0 .. $#$took) {
        my $at   = ($turn + $_) % @$ops;
        my $op   = $ops->[$at];
        my $code = $took->[$_] >= $timeout_s ? TIMEOUT : $odd{ $first + $_ } // $op->[CODE];
        $code == $op->[CODE] ? $done->[$at]++ : Sums::add($sums, $op, $code, 1);
        push $timed{ $op->[KIND] }->@*, $_ if $code >= 0 || $code == TIMEOUT;
        $busy_s{ $op->[KIND] } += $took->[$_] if $code >= 0;
        $groups->note($at, $code, $begins[$_], $took->[$_]) if @begins;
        $timeline->note($ends[$_], $self->{waits}[$first + $_] // $took->[$_], $code >= 0)
            if $timeline && $counted && ($code >= 0 || $code == TIMEOUT);
    }
    ($sums->{$_} //= Sums::none())->{busy_ns} += 1e9 * $busy_s{$_} for keys %busy_s;
    $self->count_times($first, $took, \%timed) if $counted;
}

# The times of operations, by kind and their places in a batch.
sub count_times ($self, $first, $took, $timed) {
    while (my ($kind, $places) = each %$timed) {
        Histogram::count($self->{service}{$kind} //= [], [map { 1e9 * $took->[$_] } @$places]);
        my @waits = grep { defined } $self->{waits}->@[map { $first + $_ } $self->{waits}->@* ? @$places : ()];
        Histogram::count($self->{response}{$kind} //= [], [map { 1e9 * $_ } @waits]);
    }
}

# The counts of operations in lead-ins, by kind.
sub lead_in ($self) {
    my ($sums, %message) = ($self->{lead_in});
    $message{$_} = {$sums->{$_}->%*, busy_ns => int $sums->{$_}{busy_ns}} for keys %$sums;
    return \%message;
}

# The part of `done` that every run has.
sub figures ($self, $phase) {
    my $system_ns = min(@$self{qw(system_ns cpu_ns)});
    return {
        type          => 'done', phase => $phase, operations => $self->operations, send_lag => $self->lag,
        max_in_flight => $self->{played} ? 1 : 0, groups => $self->{groups} ? $self->{groups}->message : undef,
        map({ $_ => $self->{$_} } qw(queued unsent barriers renewed)),
        reconnects    => 0,    # the libraries do not report them
        cpu_user_ns   => int($self->{cpu_ns} - $system_ns),
        cpu_system_ns => int $system_ns,
    };
}

# The message, by kind.
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
