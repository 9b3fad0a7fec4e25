# The player: a process of its own, so that the worker can answer even if a call of the library blocks.
# It prepares, then plays phase after phase, until its parent is gone.
package Player;
use v5.36;

use List::Util qw(max min);
use CallLog;
use Lane;
use Operation;
use Recorder;
use Renewal;
use Slices;
use Tape;
use Time::HiRes qw(clock_gettime clock_nanosleep CLOCK_MONOTONIC CLOCK_PROCESS_CPUTIME_ID CLOCK_REALTIME);

# The interval at which it checks for a stop, and for the end of its parent.
use constant { LOOK_S => 0.02, PROGRESS_S => 1 };

# A sleep ends some tens of µs late, so the last part of a wait polls the clock.
use constant { SPIN_S => 0.0001, FOR_EVER_S => 9e15 };

# Instants are in s, exact to some ns; an operation that is due at the very end is not due before it.
use constant ROUNDING_S => 1e-8;

sub now ()            { clock_gettime(CLOCK_MONOTONIC) }
sub timeout_s ($self) { $self->{setup}{timeout_ms} / 1000 }

# Connect and prepare everything for the window. Dies with a message of the protocol.
sub new ($class, $parent, $setup, $client_class) {
    my $tape = Tape->new($setup->{tape});
    my $reason = $setup->refusal($client_class, $tape);
    die {type => 'unsupported', reason => $reason} if $reason;
    my $client = eval { $client_class->new($setup, $tape) } // die {kind => 'connect', text => $@ =~ s/\s+$//r};
    my $self   = bless {parent => $parent, setup => $setup, tape => $tape, client => $client}, $class;
    my ($place, $lanes) = $setup->{segment}->@*;
    my $in_order = !$tape->{kinds}{set_noreply} || grep { $_ eq 'in_order' } $client_class->FEATURES;
    $tape->{any_generation} = 1    # operations may overtake each other, or other lanes are meant
        unless $in_order && $setup->{servers}->@* && $client->common && $tape->{lanes} == $lanes;
    for my $part (qw(lane prefill)) {
        my $script = $tape->$part($place, $lanes);
        my $group  = $script->{group} = $part eq 'lane' && !$tape->{open_loop} ? $tape->{group} : 1;
        $script->{play} = Lane::compile($client, $script->{ops}, $group > 1) if $script->{ops}->@*;
        $self->{$part} = $script;
    }
    $self->{quiet} = grep { /_noreply$/ } keys $tape->{kinds}->%*;
    $self->{renewal} = Renewal->new($self);
    # So that a sleep ends on time.
    if (open my $slack, '>', '/proc/self/timerslack_ns') { print $slack 1 }
    return $self;
}

# Play one phase. Returns the message `done`.
sub run ($self, $request) {
    my $prefill = $request->{phase} eq 'prefill';
    $self->{tape}->begins($prefill);
    delete $self->{slices};
    my $script  = $prefill ? $self->{prefill} : $self->{lane};
    my $limit   = $script->{ops}->@* ? $request->{ops} // FOR_EVER_S : 0;
    $limit = $script->{ops}->@* if $prefill;
    $self->{calls} = CallLog->of_run($self, $request);
    my $ahead_s = ($request->{start_unix_ns} // 0) / 1e9 - clock_gettime(CLOCK_REALTIME);
    my $start_s = now() + max(0.002, $ahead_s);
    my $timeline  = Timeline->new($start_s, $request->{duration_ms});
    my $record  = $self->{record} = Recorder->new(@$script{qw(ops group)}, $timeline);
    my $last_s  = defined $request->{duration_ms} ? $start_s + $request->{duration_ms} / 1000 : FOR_EVER_S;
    @$self{qw(end_s last_s reported_s look_s stopped)} = ($last_s, $last_s, now(), 0, 0);
    @$self{qw(at tape_s ended_s counted)} = (0, $start_s, undef, 1);
    $self->{now_s} = $record->{sent_s} = $start_s;
    if ($self->wait_until($start_s)) {
        my @before = usage();
        my $open   = $self->{tape}{open_loop} && !$prefill;
        $open ? $self->play_open_loop($script, $limit) : $self->play_closed_loop($script, $limit);
        $record->{ended_s} = $record->{sent_s} = $self->{now_s};
        $self->end_quiet if $self->{quiet} && !$prefill && $record->{played};
        $record->add_usage(\@before, [usage()]);
    }
    $record->count($self->timeout_s, sub { $self->look(now()) });
    return {done($request->{phase}, $record, $start_s)->%*, wrong_replies => (delete $self->{calls} || {})->{wrong} // []};
}

# Prepare everything for slices.
sub begin_slices ($self, $request) {
    $self->{slices} = Slices->new($self);
    return {type => 'ready'};
}

sub slice ($self, $request) { return $self->{slices}->play($request) }
sub end_slices ($self, $request) { return (delete $self->{slices})->done }

# CPU time of this process in s: in all, and in the kernel, which is in ticks of 10 ms.
sub usage () { (clock_gettime(CLOCK_PROCESS_CPUTIME_ID), (times)[1]) }

# Call after call from the next one on, until the window ends.
sub play_closed_loop ($self, $script, $limit) {
    my ($record, $play) = @{ {%$self, %$script} }{qw(record play)};
    my ($last, $at, $now, @odd) = ($#{ $script->{ops} }, @$self{qw(at now_s)});
    while ($record->{played} < $limit) {
        last if $now >= $self->{look_s} && !$self->look($now);
        my $to     = min($last, $at + Lane::BATCH - 1, $at + $limit - $record->{played} - 1);
        my $from_s = $now;
        (my $n, undef, $now, my @noted) = $play->($at, $to, $self->{look_s}, \@odd);
        $record->note($n, \@odd, @noted);
        $record->lasted($from_s, $now);
        $at += $n;
        $at = 0 if $at > $last;
    }
    @$self{qw(at now_s)} = ($at, $now);
}

# Each call when it is due, or as soon after that as the previous one has ended.
sub play_open_loop ($self, $script, $limit) {
    my ($record, $calls, $play, $length, $counted) = (@$self{qw(record calls)}, $script->{play}, scalar $script->{ops}->@*, $self->{counted});
    my @odd;
    while ($record->{played} + $record->{unsent} < $limit) {
        my ($due_s, $ended_s) = ($self->due($script, $self->{at}), $self->{ended_s});
        $self->look($ended_s) if defined $ended_s && $ended_s >= $self->{look_s};
        $self->{renewal}->renew_in_time if $self->{renewal};
        last                  if $due_s > $self->{end_s} - ROUNDING_S || !$self->wait_until($due_s);
        my $turn = $self->{at}++ % $length;
        if (now() >= $self->drain_s) {
            $record->unsent($script->{ops}[$turn], now() - $due_s) if $counted;
            next;
        }
        (undef, my $began_s, $self->{now_s}, my $took) = $play->($turn, $turn, FOR_EVER_S, \@odd);
        if ($counted) {
            $record->{queued}++ if defined $ended_s && $ended_s > $due_s;
            push $record->{lag}->@*, $began_s - $due_s;
        }
        $self->{ended_s} = $self->{now_s};
        push $record->{waits}->@*, $self->{now_s} - $due_s;
        push $record->{ends}->@*,  $self->{now_s};
        $calls->note($turn, $script->{ops}[$turn], $odd[1], $began_s, $took->[0]) if $calls;
        $record->note(1, \@odd, $took);
    }
}

# The instant at which the nth operation is due.
sub due ($self, $script, $n) {
    my $dues = $script->{dues};
    my $pass = int $n / @$dues;
    return $self->{tape_s} + ($pass * $self->{tape}{period_ns} + $dues->[$n - $pass * @$dues]) / 1e9;
}

# After this instant, an open loop sends no more operations of its window.
sub drain_s ($self) {
    return $self->{stopped} ? $self->{last_s} : $self->{last_s} + 2 * $self->timeout_s;
}

# Wait for an instant. False if the run was stopped before it came.
sub wait_until ($self, $instant_s) {
    while ((my $left_s = $instant_s - (my $now = now())) > 0) {
        $self->look($now) if $now >= $self->{look_s};
        return 0          if $self->{stopped};
        clock_nanosleep(CLOCK_MONOTONIC, 1e9 * min($left_s - SPIN_S, LOOK_S)) if $left_s > SPIN_S;
    }
    return 1;
}

# Check for a stop and for the parent: false if the window is over.
sub look ($self, $now) {
    while (my $request = $self->{parent}->next) {
        if ($request->{type} eq 'stop') {
            @$self{qw(stopped end_s last_s)} = (1, map { min($now, $_) } @$self{qw(end_s last_s)});
        }
    }
    exit 0 if $self->{parent}{ended};
    if ($now - $self->{reported_s} >= PROGRESS_S) {
        my ($played, $failed) = $self->{record}->@{qw(played failed)};
        $self->{parent}->send_message({type => 'progress', ops => $played - $failed, errors => $failed});
        $self->{reported_s} = $now;
    }
    $self->{look_s} = min($self->{end_s}, $now + LOOK_S);
    return $now < $self->{end_s};
}

# Send commands with a reply after operations without one.
sub end_quiet ($self) {
    my $answered = eval { $self->{client}->barrier };
    if (defined $answered) {
        $self->{record}{barriers} += $answered;
        $self->{record}{ended_s} = now();
    } else {    # the server is gone, with the last operations
        print STDERR "no answer after the last operations without one: $@";
    }
}

sub done ($phase, $record, $start_s) {
    return {
        $record->figures($phase)->%*,
        elapsed_ns      => int 1e9 * max(0, $record->{ended_s} - $start_s),
        send_elapsed_ns => int 1e9 * max(0, $record->{sent_s} - $start_s),
        map({ $_ => $record->{timeline} ? $record->{timeline}->$_ : undef } qw(timeline sections)),
    };
}

1;
