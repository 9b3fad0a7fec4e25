# Distinguishes a miss from a failure for libraries that return nothing for both. They close a connection
# when a call fails, and open it again with the next call: so a call did not fail if all sockets are there
# when it returns. If one of several servers is gone, every call that finds nothing counts as failed.
package Sockets;
use v5.36;

use POSIX ();

# From now on all connections are there.
sub watch_sockets ($self) {
    $self->{sockets}      = _sockets();
    $self->{socket_count} = keys $self->{sockets}->%*;
}

sub is_sound ($self) {
    my $sockets = $self->{sockets};
    my @gone    = grep { ((POSIX::fstat($sockets->{$_}))[1] // 0) != $_ } keys %$sockets;
    $self->{sockets} = _sockets() if @gone || keys %$sockets < $self->{socket_count};
    return keys $self->{sockets}->%* == $self->{socket_count};
}

# The sockets of this process: their descriptors by inode.
sub _sockets () {
    opendir my $folder, '/proc/self/fd' or return {};
    my %sockets;
    for my $fd (grep { /^\d/ } readdir $folder) {
        my $is = readlink "/proc/self/fd/$fd";
        $sockets{$1} = $fd if defined $is && $is =~ /^socket:\[(\d+)\]/;
    }
    return \%sockets;
}

1;
