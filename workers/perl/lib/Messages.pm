# JSON lines over a pair of handles: between the orchestrator and the worker, and between the worker
# and its player.
package Messages;
use v5.36;

use IO::Select;
use JSON::PP ();

my $JSON = JSON::PP->new->utf8->allow_nonref;

sub new ($class, $in, $out) {
    $in->blocking(0);
    $out->autoflush(1);
    return bless {in => $in, out => $out, rest => '', queue => [], ended => 0}, $class;
}

sub send_message ($self, $message) {
    my $line = $JSON->encode($message) . "\n";
    while (length $line) {
        my $sent = syswrite $self->{out}, $line;
        if (defined $sent) {
            substr $line, 0, $sent, '';
        } elsif ($!{EAGAIN} || $!{EINTR}) {
            IO::Select->new($self->{out})->can_write(1);
        } else {
            $self->{ended} = 1;    # nobody is left to tell
            return;
        }
    }
}

# The next message, if one has come in by now; never waits. A line that is none comes as its text.
sub next ($self) {
    $self->_read unless $self->{queue}->@*;
    return shift $self->{queue}->@*;
}

sub _read ($self) {
    my $read;
    do { $read = sysread $self->{in}, $self->{rest}, 1 << 16, length $self->{rest} } while $read;
    $self->{ended} ||= defined $read;
    while ($self->{rest} =~ s/^([^\n]*)\n//) {
        my $text    = $1;
        my $message = eval { $JSON->decode($text) };
        my $is      = ref $message eq 'HASH' && defined $message->{type};
        push $self->{queue}->@*, $is ? $message : {type => '', text => substr $text, 0, 120} if $text =~ /\S/;
    }
}

# Wait until one of several has something to say, at most so long.
sub wait_for ($seconds, @wires) {
    return if grep { $_->{queue}->@* } @wires;
    IO::Select->new(map { $_->{in} } @wires)->can_read($seconds);
}

1;
