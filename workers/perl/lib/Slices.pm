# Slices: short parts of the tape, in turns with other workers. Each goes on where the last one ended. All memory
# is allocated when they begin.
package Slices;
use v5.36;

use List::Util qw(max min);
use Recorder;
use Time::HiRes qw(clock_gettime CLOCK_REALTIME);

sub new ($class, $player) {
    my $record = Recorder->new($player->{lane}->@{qw(ops group)}, undef);
    $record->{parts} = [];
    @$player{qw(record at tape_s reported_s)} = ($record, 0, 0, Player::now());
    return bless {player => $player, record => $record, paused_s => 0, elapsed_ns => 0}, $class;
}

# Play a slice; the answer.
sub play ($self, $asked) {
    my ($player, $record) = @$self{qw(player record)};
    my ($length_s, $lead_in_s) = map { $_ / 1e6 } @$asked{qw(length_us lead_in_us)};
    my ($first, $failed) = @$record{qw(played failed)};
    my $start_s = Player::now() + max(0, ($asked->{start_unix_ns} // 0) / 1e9 - clock_gettime(CLOCK_REALTIME));
    my $last_s  = $start_s + $length_s;
    @$player{qw(end_s last_s look_s stopped ended_s)} = ($last_s, $last_s, 0, 0, undef);
    $player->{tape_s} += $start_s - $self->{paused_s};
    $player->wait_until($start_s);

    $player->{now_s} = Player::now();
    my @before = Player::usage();
    my $from_s = $start_s + $lead_in_s;

    # A closed loop that had no CPU until the lead-in's end has no lead-in.
    if ($player->{now_s} < $from_s || $player->{tape}{open_loop} && $lead_in_s > 0) {
        $self->play_part(0, $from_s);
        $from_s = $player->{now_s} unless $player->{client}->in_process;    # it waits for a CPU only
    }
    my $counted_from = $record->{played};
    my $failed_from  = $record->{failed};
    my $middle_s = $start_s + ($lead_in_s + $length_s) / 2;
    my ($half_ops, $half_end_s) = (0, $middle_s);
    if ($player->{tape}{open_loop} || $lead_in_s >= $length_s) {
        $self->play_part(1, $last_s);
    } else {
        $self->play_part(1, $middle_s);
        $half_ops   = $record->{played} - $counted_from;
        $half_end_s = $player->{now_s} if $half_ops;
        $self->play_on($last_s);
    }
    $record->{ended_s} = $player->{now_s};
    $player->end_quiet if $player->{quiet} && $record->{played} > $first;
    $record->add_usage(\@before, [Player::usage()]);
    $self->{paused_s} = max($start_s, $player->{last_s});    # a stop may come before the begin

    my $counted    = $record->{played} - $counted_from;
    my $errors     = $record->{failed} - $failed_from + $record->late($counted_from, $player->timeout_s);

    # At least to the slice's end, to include time without a CPU.
    my $counted_s = max($counted ? $record->{ended_s} : 0, $player->{last_s}) - $from_s;
    $counted_s     = $player->{last_s} - $start_s - $lead_in_s if $player->{tape}{open_loop};
    $counted_s     = 0 if $lead_in_s >= $length_s || !$player->{lane}{ops}->@*;
    my $half_ns    = $counted_s && !$player->{tape}{open_loop} ? int 0.5 + 1e9 * max(0, $half_end_s - $from_s) : 0;
    my $elapsed_ns = int 0.5 + 1e9 * max(0, $counted_s);
    $self->{elapsed_ns} += $elapsed_ns;
    return {
        type => 'slice_done', ops => $counted - $errors, errors => $errors, lead_in_ops => $counted_from - $first,
        elapsed_ns => $elapsed_ns, half_ops => $half_ops, half_ns => $half_ns,
    };
}

# Play a part, the lead-in or the counted part, until an instant or a stop.
sub play_part ($self, $counted, $end_s) {
    my ($player, $record) = @$self{qw(player record)};
    my $script = $player->{lane};
    return unless $script->{ops}->@*;
    push $record->{parts}->@*, [$record->{played}, $player->{at} % $script->{ops}->@*, $counted];
    $player->{counted} = $counted;
    $self->play_on($end_s);
}

# Play on in the same part, until an instant or a stop.
sub play_on ($self, $end_s) {
    my $player = $self->{player};
    my $script = $player->{lane};
    return unless $script->{ops}->@*;
    @$player{qw(end_s look_s)} = (min($end_s, $player->{last_s}), 0);
    $player->{tape}{open_loop} ? $player->play_open_loop($script, 9e15) : $player->play_closed_loop($script, 9e15);
}

# The fields of `done`.
sub done ($self) {
    my ($player, $record) = @$self{qw(player record)};
    $record->count($player->timeout_s, sub { $player->look(Player::now()) });
    return {
        $record->figures('measure')->%*, lead_in => $record->lead_in,
        elapsed_ns => $self->{elapsed_ns}, send_elapsed_ns => $self->{elapsed_ns},
    };
}

1;
