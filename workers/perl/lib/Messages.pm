# JSON lines over a pair of handles: between the orchestrator and the worker, and between the worker
# and its player.
package Messages;
use v5.36;

use JSON::PP ();

my $JSON = JSON::PP->new->utf8->allow_nonref;

# JSON::PP takes 0.2 ms for the shortest line. Messages between two slices are flat: words and whole numbers.
my $PAIR = qr/"(?:\w+)"\s*:\s*(?:"\w*"|0|-?[1-9][0-9]*)/a;
my $FLAT = qr/\A\s*\{\s*$PAIR(?:\s*,\s*$PAIR)*\s*\}\s*\z/a;

sub new ($class, $in, $out) {
    $in->blocking(0);
    $out->autoflush(1);
    return bless {in => $in, out => $out, rest => '', queue => [], ended => 0}, $class;
}

sub send_message ($self, $message) {
    my $line = encode($message) . "\n";
    while (length $line) {
        my $sent = syswrite $self->{out}, $line;
        if (defined $sent) {
            substr $line, 0, $sent, '';
        } elsif ($!{EAGAIN} || $!{EINTR}) {
            select undef, bits($self->{out}), undef, 1;
        } else {
            $self->{ended} = 1;    # the other end is gone
            return;
        }
    }
}

sub encode ($message) {
    my @wide = grep { !defined || ref || !/\A\w+\z/a } values %$message;
    return $JSON->encode($message) if @wide;
    return '{' . join(',', map { "\"$_\":" . _word($message->{$_}) } keys %$message) . '}';
}

sub _word ($word) { return $word =~ /\A[0-9]+\z/a ? 0 + $word : "\"$word\"" }

sub decode ($text) {
    return $JSON->decode($text) unless $text =~ $FLAT;
    my %message = $text =~ /"(\w+)"\s*:\s*"?([\w-]*)/ga;
    /\A-?[0-9]+\z/a && ($_ += 0) for values %message;
    return \%message;
}

# The next message, if one is there; never waits. A line that is no message comes as its text.
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
        my $message = eval { decode($text) };
        my $is      = ref $message eq 'HASH' && defined $message->{type};
        push $self->{queue}->@*, $is ? $message : {type => '', text => substr $text, 0, 120} if $text =~ /\S/;
    }
}

# Wait until one of several has a message, up to a time limit.
sub wait_for ($seconds, @wires) {
    return if grep { $_->{queue}->@* } @wires;
    select bits(map { $_->{in} } @wires), undef, undef, $seconds;
}

# Handles in the form for `select`.
sub bits (@handles) {
    my $bits = '';
    vec($bits, fileno $_, 1) = 1 for @handles;
    return $bits;
}

1;
