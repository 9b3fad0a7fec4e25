# memcached: Cache::Memcached, the client in plain Perl, with one connection to each server. It writes a
# request at once, and cannot set TCP_NODELAY.
#
# It returns nothing for a miss and for a failure alike: see Sockets. A server that answers a delete, add,
# replace, incr or decr with an error counts as refusing: the library does not distinguish the two. It
# leaves a server alone for 20 to 30 s once it could not connect.
package Client::Memcached;
use v5.36;
use parent -norequire, 'Client', 'Sockets';

use Verify;
use Operation;
use Sockets;

use constant { LIBRARY => 'Cache::Memcached', MODULE => 'Cache::Memcached', PACKAGE => 'libcache-memcached-perl' };
sub FEATURES ($class) { qw(open_loop unix cluster) }
sub OPTIONS ($class)  { (hashing => 'default') }

sub calls ($class) {
    return {
        get     => ['$cache->get($key)',                       'value'],
        mget    => ['$cache->get_multi(@{$keys})',             'values'],
        set     => ['$cache->set($key, $value, $exptime)',     'stored'],
        add     => ['$cache->add($key, $value, $exptime)',     'accepted'],
        replace => ['$cache->replace($key, $value, $exptime)', 'accepted'],
        delete  => ['$cache->delete($key)',                    'known'],
        incr    => ['$cache->incr($key, $amount)',             'number'],
        decr    => ['$cache->decr($key, $amount)',             'number'],
    };
}

sub connect ($self) {
    my %own = $self->common ? (connect_timeout => $self->timeout_s, select_timeout => $self->timeout_s) : ();
    $self->{cache} = Cache::Memcached->new({servers => [$self->addresses], %own});
    $self->reach;
}

sub reach ($self) {
    for my $server ($self->addresses) {
        $self->{cache}->sock_to_host($server) or die "$server: no connection\n";
    }
    $self->watch_sockets;
}

sub failed ($self, $op, $got) {
    return $self->is_sound ? 0 : CONNECTION;
}

1;
