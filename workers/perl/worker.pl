#!/usr/bin/perl
# The worker for memcached clients in Perl: `perl worker.pl CLIENT`.
#
#   worker.pl      requests in, answers out          lib/Loop.pm        the measured loop, compiled
#   lib/Setup.pm   what is asked for, and refused    lib/Judge.pm       what an answer comes to
#   lib/Player.pm  the process that plays            lib/Record.pm      what is noted, and its sums
#   lib/Tape.pm    what is to be done                lib/Histogram.pm   HdrHistogram, in Perl
#   lib/Client.pm  what a client file has            lib/Wire.pm        JSON lines
#   lib/Course.pm  the window by slices
#   clients/       one file for each library
use v5.36;

use FindBin;
use lib "$FindBin::Bin/lib";

use Client;
use IO::Handle;
use Player;
use Setup;
use Socket;
use Tape qw(every_kind);
use Time::HiRes ();
use Wire;

use constant { PREPARE_S => 600, LOST_S => 6 };

my $name = $ARGV[0] // '';
my ($file) = grep { $_ eq "$FindBin::Bin/clients/$name.pm" } glob "$FindBin::Bin/clients/*.pm";
if (!$file) {
    my @known = map { m{([^/]+)\.pm$} } glob "$FindBin::Bin/clients/*.pm";
    print STDERR "worker.pl CLIENT: one of @known\n";
    exit 2;
}
my $class = 'Client::' . ucfirst $name =~ s/\W/_/gr;
require $file;

# Stdout is the protocol's alone, whatever a library prints.
open my $out, '>&', \*STDOUT or die $!;
open STDOUT,  '>&', \*STDERR or die $!;
$SIG{PIPE} = 'IGNORE';
my $orchestrator = Wire->new(\*STDIN, $out);
my ($player, $player_id, $timeout_s);

REQUEST: until ($orchestrator->{ended}) {
    Wire::wait_for(undef, $orchestrator);
    while (my $request = $orchestrator->next) {
        last REQUEST if $request->{type} eq 'bye';
        my $answer = answer($request);
        $orchestrator->tell($answer) if $answer;
    }
}
dismiss();

sub failure ($kind, $text, $definite = 1) {
    return {type => 'error', kind => $kind, text => $text, definite => $definite ? JSON::PP::true : JSON::PP::false};
}

sub answer ($request) {
    my $type = $request->{type};
    return hello()            if $type eq 'hello';
    return prepare($request)  if $type eq 'prepare';
    return run($request)      if $type eq 'run';
    return undef              if $type eq 'stop';    # the run is over already
    return failure('protocol', 'not a request: ' . ($request->{text} // $type));
}

# Who this is. A library that is not there is an answer too.
sub hello () {
    if (my $absent = $class->absent) {
        return {type => 'unsupported', %$absent};
    }
    my @kinds = grep { $class->calls->{$_} } every_kind();
    return {
        type         => 'ready', protocol => 1, client => "perl/$name", library => $class->LIBRARY,
        library_version => $class->VERSION_TEXT, language => 'perl', runtime => sprintf('perl %vd', $^V),
        capabilities => [$class->WIRES, $class->FEATURES, 'course', @kinds],
    };
}

sub dismiss () {
    return unless $player_id;
    kill KILL => $player_id;
    waitpid $player_id, 0;
    $player = $player_id = undef;
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
        play(Wire->new($theirs, $theirs), $request);
        exit 0;
    }
    close $theirs;
    $player    = Wire->new($ours, $ours);
    $timeout_s = ($request->{timeout_ms} // 1000) / 1000;
    my $answer = attend(PREPARE_S + 2 * $timeout_s);
    dismiss() if $answer->{type} ne 'ready';
    return $answer;
}

sub run ($request) {
    return failure('protocol', 'run before prepare') unless $player;
    return failure('protocol', 'no phase that it knows') if ($request->{phase} // '') !~ /^(?:prefill|warmup|measure)\z/;
    $player->tell($request);
    my $answer = attend(LOST_S + 2 * $timeout_s);
    dismiss() if $answer->{type} eq 'error';
    return $answer;
}

# Wait for the player's answer, and listen meanwhile. It must not be silent for longer than this.
sub attend ($patience_s) {
    my $heard_s = Time::HiRes::time();
    while (1) {
        Wire::wait_for(0.25, $player, $orchestrator);
        while (my $request = $orchestrator->next) { obey($request) }
        if ($orchestrator->{ended}) {
            dismiss();
            exit 0;
        }
        while (my $message = $player->next) {
            $heard_s = Time::HiRes::time();
            return $message if $message->{type} ne 'progress';
            $orchestrator->tell($message);
        }
        return failure('client', 'the library ended its process', 0) if $player->{ended};
        return failure('client', 'a call of the library does not return', 0) if Time::HiRes::time() - $heard_s > $patience_s;
    }
}

# During a run the orchestrator says `stop`, `bye`, or nothing.
sub obey ($request) {
    if ($request->{type} eq 'bye') {
        dismiss();
        exit 0;
    }
    return $player->tell($request) if $request->{type} eq 'stop';
    $orchestrator->tell(failure('protocol', 'a run is going on'));
}

# The player's life.
sub play ($parent, $request) {
    my $self = eval { Player->new($parent, Setup->new($request), $class) };
    return $parent->tell(refused($@)) unless $self;
    $parent->tell({type => 'ready'});
    until ($parent->{ended}) {
        Wire::wait_for(undef, $parent);
        while (my $asked = $parent->next) {
            next unless $asked->{type} eq 'run';
            $parent->tell(eval { $self->run($asked) } // failure('internal', "$@"));
        }
    }
}

# What a player died of, as a message.
sub refused ($error) {
    return failure('internal', "$error") unless ref $error;
    return {%$error, reason => "$name: $error->{reason}"} if $error->{reason};
    return failure($error->{kind}, $error->{text});
}
