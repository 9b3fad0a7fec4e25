# Changes of Cache::Memcached, one of them at a time: the environment variable PLANTED names it.
package Planted;
use v5.36;
use Socket qw(AF_INET SOCK_STREAM IPPROTO_TCP TCP_NODELAY MSG_DONTWAIT MSG_WAITALL);
use Time::HiRes qw(setitimer usleep ITIMER_REAL);

our $NAME = $ENV{PLANTED} // '';
my ($asked, $reader, $writer);
my %quick;    # the sockets that send without delay

my %beside = (
    'a connection'    => sub ($sock) { close connected($sock) },
    'another request' => \&ask,
    'an empty read'   => sub ($sock) { recv $sock, my $nothing, 1, MSG_DONTWAIT },
    'polls'           => sub ($sock) { select undef, undef, undef, 0 for 1 .. 3 },
    'a timer'         => sub ($sock) { setitimer ITIMER_REAL, 10_000 },
    'options'         => sub ($sock) { no_delay($sock, 1) },
    'a pipe'          => \&wake,
    'a sleep'         => sub ($sock) { usleep 50 for 1 .. 5 },
    'a file'          => sub ($sock) { stat '/' },
    'other calls'     => sub ($sock) { my @same = map { getppid } 1 .. 3 },
);

sub connected ($sock) {
    socket my $other, AF_INET, SOCK_STREAM, 0 or die;
    connect $other, getpeername $sock or die;
    return $other;
}

sub ask ($sock) {
    $asked //= connected($sock);
    send $asked, "mn\r\n", 0;
    recv $asked, my $reply, 4, MSG_WAITALL;
}

sub wake ($sock) {
    pipe $reader, $writer unless $reader;
    syswrite $writer, 'a';
    sysread $reader, my $letter, 1;
}

sub no_delay ($sock, $is_on) { setsockopt $sock, IPPROTO_TCP, TCP_NODELAY, $is_on }

sub sends ($sock, $data, $flags) {
    $beside{$NAME}->($sock) if $beside{$NAME};
    # This library never asks for TCP_NODELAY.
    no_delay($sock, 1) if $NAME eq 'two writes' && !$quick{$sock}++;
    if ($NAME eq 'two writes' || $NAME eq 'Nagle') {
        my $sent = send $sock, substr($data, 0, 3), $flags;
        return $sent + send $sock, substr($data, 3), $flags;
    }
    if ($NAME eq 'a longer request' && $data =~ /^get/) {
        send $sock, $data =~ s/\r\n/ missing\r\n/r, $flags;
        return length $data;
    }
    return send $sock, $data, $flags;
}

sub reads { sysread $_[0], $_[1], $NAME eq 'small reads' && $_[2] > 16 ? 16 : $_[2], $_[3] // 0 }

1;
