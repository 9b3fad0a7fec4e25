#!/usr/bin/perl
# The worker for memcached clients in Perl: `perl worker.pl CLIENT`.
#
#   worker.pl        requests in, answers out       lib/Lane.pm       the measured loop, compiled
#   lib/Prepare.pm   the request `prepare`        lib/Verify.pm     the result of a reply
#   lib/Client.pm    the base of a client file   lib/Recorder.pm   the records, and their sums
#   lib/Player.pm    one prepared trial             lib/Histogram.pm  HdrHistogram, in Perl
#   lib/Tape.pm      the tape, checked              lib/Timeline.pm   the window in slices and sections
#   lib/Messages.pm  JSON lines                     lib/Slices.pm     the tape played in turns
#   lib/CallLog.pm   a record of each call          lib/Groups.pm     the times of whole groups
#   lib/Renewal.pm   connections that are opened again as asked
#   lib/Sampler.pm   the functions of a run
#   clients/       one file for each library        README.md         what a client file must contain
use v5.36;

use FindBin;
use lib "$FindBin::Bin/lib";

BEGIN { require Sampler; Sampler::restart() }
use Client;
use IO::Handle;
use Player;
use Prepare;
use Socket;
use Tape qw(every_kind);
use Time::HiRes ();
use Messages;

use constant { PREPARE_S => 600, LOST_S => 6 };

my $name = $ARGV[0] // '';
my ($file) = grep { $_ eq "$FindBin::Bin/clients/$name.pm" } glob "$FindBin::Bin/clients/*.pm";
if (!$file) {
    my @known = map { m{([^/]+)\.pm$} } glob "$FindBin::Bin/clients/*.pm";
    print STDERR "worker.pl CLIENT: one of @known\n";
    exit 2;
}
my $class = 'Client::' . ucfirst $name =~ s/\W/_/gr;
my $broken = eval { require $file; 1 } ? undef : refused($@);

# Stdout is for the protocol only, even if a library prints.
open my $out, '>&', \*STDOUT or die $!;
open STDOUT,  '>&', \*STDERR or die $!;
$SIG{PIPE} = 'IGNORE';
my $orchestrator = Messages->new(\*STDIN, $out);
my ($player, $player_id, $timeout_s);
my $has_slices = 0;    # between `begin_slices` and `end_slices`

REQUEST: until ($orchestrator->{ended}) {
    Messages::wait_for(undef, $orchestrator);
    while (my $request = $orchestrator->next) {
        last REQUEST if $request->{type} eq 'bye';
        my $answer = answer($request);
        $orchestrator->send_message($answer) if $answer;
    }
}
dismiss();

sub failure ($kind, $text, $definite = 1) {
    return {type => 'error', kind => $kind, text => $text, definite => $definite ? JSON::PP::true : JSON::PP::false};
}

sub answer ($request) {
    my $type = $request->{type};
    return $broken            if $broken && $type =~ /^(?:hello|prepare)$/;
    return hello()            if $type eq 'hello';
    return prepare($request)  if $type eq 'prepare';
    return run($request)      if $type eq 'run';
    return slices($request)   if $type =~ /^(?:begin_slices|slice|end_slices)\z/;
    return undef              if $type eq 'stop';    # the run is over already
    return failure('protocol', 'not a request: ' . ($request->{text} // $type));
}

# The answer to `hello`, also if the library is missing.
sub hello () {
    if (my $absent = $class->absent) {
        return {type => 'unsupported', %$absent};
    }
    my @kinds = grep { $class->calls->{$_} } every_kind();
    return {
        type         => 'ready', protocol => 2, client => "perl/$name", library => $class->LIBRARY,
        library_version => $class->VERSION_TEXT, language => 'perl', runtime => sprintf('perl %vd', $^V),
        capabilities => [$class->WIRES, $class->FEATURES, 'timeline', 'slices', 'groups', 'calls', @kinds],
    };
}

sub dismiss () {
    return unless $player_id;
    kill KILL => $player_id;
    waitpid $player_id, 0;
    $player = $player_id = undef;
    $has_slices = 0;
}

# A new player, which reads the tape and connects.
sub prepare ($request) {
    my $absent = $class->absent;
    return {type => 'unsupported', %$absent} if $absent;
    dismiss();
    socketpair my $ours, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die $!;
    $player_id = fork // die $!;
    if ($player_id == 0) {
        close $ours;
        play(Messages->new($theirs, $theirs), $request);
        exit 0;
    }
    close $theirs;
    $player    = Messages->new($ours, $ours);
    $timeout_s = ($request->{timeout_ms} // 1000) / 1000;
    my $answer = wait_for_answer(PREPARE_S + 2 * $timeout_s);
    dismiss() if $answer->{type} ne 'ready';
    return $answer;
}

sub run ($request) {
    return failure('protocol', 'run before prepare') unless $player;
    return failure('protocol', 'an unknown phase') if ($request->{phase} // '') !~ /^(?:prefill|warmup|measure)\z/;
    $has_slices = 0;
    return ask_player($request);
}

# The requests of slices, and refusals of requests out of order.
sub slices ($request) {
    my ($type, $length_us) = @$request{qw(type length_us)};
    my $lead_in_us = $request->{lead_in_us} //= 0;
    return failure('protocol', "$type before prepare") unless $player;
    return failure('protocol', "$type before begin_slices") unless $has_slices || $type eq 'begin_slices';
    if ($type eq 'slice') {
        my $is_sound = 2 == grep { defined && /^[0-9]+\z/a } $length_us, $lead_in_us;
        return failure('protocol', 'a slice has a length, and a lead-in that is not longer')
            unless $is_sound && $lead_in_us <= $length_us;
    }
    $has_slices = $type ne 'end_slices';
    return ask_player($request);
}

sub ask_player ($request) {
    $player->send_message($request);
    my $answer = wait_for_answer(LOST_S + 2 * $timeout_s, $request->{type} eq 'run');
    dismiss() if $answer->{type} eq 'error';
    return $answer;
}

# Wait for the player's answer, and read requests meanwhile. The player must not be silent for longer than
# this. `$tells`: whether to report its progress.
sub wait_for_answer ($patience_s, $tells = 0) {
    my $last_answer_s = Time::HiRes::time();
    while (1) {
        Messages::wait_for(0.25, $player, $orchestrator);
        while (my $request = $orchestrator->next) { obey($request) }
        if ($orchestrator->{ended}) {
            dismiss();
            exit 0;
        }
        while (my $message = $player->next) {
            $last_answer_s = Time::HiRes::time();
            return $message if $message->{type} ne 'progress';
            $orchestrator->send_message($message) if $tells;
        }
        return failure('client', 'the library ended its process', 0) if $player->{ended};
        return failure('client', 'a call of the library does not return', 0) if Time::HiRes::time() - $last_answer_s > $patience_s;
    }
}

# During a run the orchestrator says `stop`, `bye`, or nothing.
sub obey ($request) {
    if ($request->{type} eq 'bye') {
        dismiss();
        exit 0;
    }
    return $player->send_message($request) if $request->{type} eq 'stop';
    $orchestrator->send_message(failure('protocol', 'a run is going on'));
}

# The player's life.
sub play ($parent, $request) {
    my $self = eval { Player->new($parent, Prepare->new($request), $class) };
    return $parent->send_message(refused($@)) unless $self;
    $parent->send_message({type => 'ready'});
    until ($parent->{ended}) {
        Messages::wait_for(undef, $parent);
        while (my $asked = $parent->next) {
            my $type = $asked->{type};
            next if $type eq 'stop';    # the run is over already
            $parent->send_message(eval { Sampler::sampled($asked, sub { $self->$type($asked) }) } // refused($@));
        }
    }
}

# The error of a player that died, as a message.
sub refused ($error) {
    $error = {kind => 'internal', text => "$error"} unless ref $error;
    print STDERR "$error->{text}\n" if ($error->{kind} // '') eq 'internal';
    return {%$error, reason => "$name: $error->{reason}"} if $error->{reason};
    return failure($error->{kind}, $error->{text});
}
