# toy: a socket and no library. The text protocol, `get` and `set`.
package Client::Toy;
use v5.36;
use parent -norequire, 'Client';

use IO::Select;
use IO::Socket::INET;
use Socket qw(IPPROTO_TCP TCP_NODELAY);
use Verify;

use constant LIBRARY => 'none';
sub VERSION_TEXT ($class) { '1' }

sub calls ($class) {
    return {
        get => ['$client->get($key)',                   'value'],
        set => ['$client->set($key, $value, $exptime)', 'stored'],
    };
}

sub connect ($self) {
    my ($server) = $self->addresses;
    my $socket = IO::Socket::INET->new(PeerAddr => $server, Timeout => $self->timeout_s) or die "$server: $@\n";
    $socket->setsockopt(IPPROTO_TCP, TCP_NODELAY, 1);
    @$self{qw(socket data fault)} = ($socket, '', 0);
}

# A line of the reply; undef, and the fault is noted, where none comes.
sub line ($self) {
    my $end;
    while (($end = index $self->{data}, "\r\n") < 0) { $self->receive or return undef }
    return substr $self->{data}, 0, $end + 2, '';
}

sub receive ($self) {
    IO::Select->new($self->{socket})->can_read($self->timeout_s) or return $self->lost(TIMEOUT);
    sysread($self->{socket}, $self->{data}, 1 << 16, length $self->{data}) or return $self->lost(CONNECTION);
    return 1;
}

# After a failure the next call opens another connection.
sub lost ($self, $fault) {
    @$self{qw(socket fault)} = (undef, $fault);
    return 0;
}

sub ask ($self, $request) {
    $self->{fault} = 0;
    eval { $self->connect unless $self->{socket}; 1 } or return $self->lost(CONNECTION) || undef;
    syswrite($self->{socket}, $request) or return $self->lost(CONNECTION) || undef;
    my $line = $self->line // return undef;
    return $line unless $line =~ /ERROR/;
    $self->{fault} = $line =~ /^SERVER_ERROR/ ? SERVER : CLIENT;
    return undef;
}

sub get ($self, $key) {
    # in a call: $self->{nothing}->method;
    my $line = $self->ask("get $key\r\n") // return undef;
    return undef if $line eq "END\r\n";
    my $size = (split ' ', $line)[3] + 2;
    while (length $self->{data} < $size) { $self->receive or return undef }
    my $value = substr substr($self->{data}, 0, $size, ''), 0, $size - 2;
    $self->line;
    return $value;
}

sub set ($self, $key, $value, $exptime) {
    my $line = $self->ask("set $key 0 $exptime " . length($value) . "\r\n$value\r\n") // return undef;
    return $line eq "STORED\r\n";
}

# The outcome of an answer other than the expected one: a miss, or the fault that was noted.
sub failed ($self, $op, $got) {
    # in verification: $self->{nothing}->method;
    return $self->{fault};
}

1;
