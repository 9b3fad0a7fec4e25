# fast: Cache::Memcached::Fast, one client with one connection to each server. It sets TCP_NODELAY.
#
# It returns undef for a miss and for a failure alike. But it closes a connection on every failure, and
# opens it again with the next call: so where the sockets are as they were, a read without a value was a
# miss. With several servers a read that finds nothing while one of them is gone counts as failed.
# Whether a server refused or was lost cannot be told: both are `connection`. It takes a value of more
# than max_size (1 MiB, as the library comes) for a failure of its own: `client`.
package Client::Fast;
use v5.36;
use parent -norequire, 'Client';

use Judge;
use Operation;
use POSIX ();

use constant { LIBRARY => 'Cache::Memcached::Fast', MODULE => 'Cache::Memcached::Fast' };
use constant { PACKAGE => 'libcache-memcached-fast-perl', KETAMA_POINTS => 150 };
sub FEATURES ($class) { qw(open_loop unix cluster) }
sub OPTIONS ($class)  { (hashing => 'default|ketama') }

my %CALLS = (
    get     => ['$cache->get($key)',                          'value'],
    gets    => ['$cache->gets($key)',                         'versioned'],
    gat     => ['$cache->gat($exptime, $key)',                'value'],
    mget    => ['$cache->get_multi(@{$keys})',                'values'],
    set     => ['$cache->set($key, $value, $exptime)',        'stored'],
    mset    => ['$cache->set_multi(@{$items})',               'each'],
    add     => ['$cache->add($key, $value, $exptime)',        'accepted'],
    replace => ['$cache->replace($key, $value, $exptime)',    'accepted'],
    cas     => ['$client->swap($op, $key, $value, $exptime)', 'code'],
    delete  => ['$cache->delete($key)',                       'known'],
    touch   => ['$cache->touch($key, $exptime)',              'known'],
    incr    => ['$cache->incr($key, $amount)',                'number'],
    decr    => ['$cache->decr($key, $amount)',                'number'],
    version => ['$client->barrier',                           'known'],
);
# What is called without asking for a result has no reply, where the servers are declared so.
my @QUIET = qw(set mset add replace delete touch incr decr);

sub calls ($class) {
    return {%CALLS, map { ("${_}_noreply" => [$CALLS{$_}[0], 'none']) } @QUIET};
}

sub connect ($self) {
    my ($tape, $setup) = @$self{qw(tape setup)};
    my $quiet = grep { /_noreply$/ } keys $tape->{kinds}->%*;
    my %own   = $self->common ? (io_timeout => $self->timeout_s, connect_timeout => $self->timeout_s) : ();
    $own{ketama_points} = KETAMA_POINTS if $self->option('hashing', 'default') eq 'ketama';
    $self->{cache} = Cache::Memcached::Fast->new({
        servers => [map { { address => $_, $quiet ? (noreply => 1) : () } } $self->addresses], %own,
    });
    my $versions = $self->{cache}->server_versions;
    for my $server ($setup->{servers}->@*) {
        die "$server: no connection\n" unless $versions->{ $server =~ s/^unix://r };
    }
    $self->{sockets}      = sockets();
    $self->{socket_count} = keys $self->{sockets}->%*;
}

# The sockets of this process by inode.
sub sockets () {
    opendir my $folder, '/proc/self/fd' or return {};
    my %inodes;
    for my $fd (grep { /^\d/ } readdir $folder) {
        my $is = readlink "/proc/self/fd/$fd";
        $inodes{$1} = $fd if defined $is && $is =~ /^socket:\[(\d+)\]/;
    }
    return \%inodes;
}

# Whether every connection is there. A call that failed has closed its own.
sub is_sound ($self) {
    my $sockets = $self->{sockets};
    my @gone    = grep { ((POSIX::fstat($sockets->{$_}))[1] // 0) != $_ } keys %$sockets;
    $self->{sockets} = sockets() if @gone || keys %$sockets < $self->{socket_count};
    return keys $self->{sockets}->%* == $self->{socket_count};
}

my %READS = map { $_ => 1 } qw(get gets gat mget cas);

sub failed ($self, $op, $got) {
    return 0 if defined $got;    # the server said no
    return CONNECTION unless $self->is_sound;
    return $READS{ $op->[KIND] } ? 0 : CLIENT;
}

# A value with its token, then the new value; what both come to. It is judged where a program uses it.
sub swap ($self, $op, $key, $value, $exptime) {
    my $read = $self->{cache}->gets($key) or return $self->failed($op, undef);
    my $right  = Judge::right($self, $op->[NUMBERS][0], $read->[1]);
    my $stored = $self->{cache}->cas($key, $read->[0], $value, $exptime);
    return WRONG       unless $right;
    return $op->[CODE] if $stored;
    return defined $stored ? 1 | REFUSED : CONNECTION;
}

# The command `version` on each connection: how many answered.
sub barrier ($self) {
    my $answered = keys $self->{cache}->server_versions->%*;
    return $answered || undef;
}

1;
