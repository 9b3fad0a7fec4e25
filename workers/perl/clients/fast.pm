# fast: Cache::Memcached::Fast, one client with one connection to each server. It sets TCP_NODELAY.
#
# It returns undef for a miss and for a failure alike: see Sockets. It does not report whether a server
# refused or was lost: both are `connection`. It does not send values above max_size, by default 1 MiB:
# `client`.
package Client::Fast;
use v5.36;
use parent -norequire, 'Client', 'Sockets';

use Verify;
use Operation;
use Sockets;

use constant { LIBRARY => 'Cache::Memcached::Fast', MODULE => 'Cache::Memcached::Fast' };
use constant { PACKAGE => 'libcache-memcached-fast-perl', KETAMA_POINTS => 150 };
sub FEATURES ($class) { qw(in_order open_loop unix cluster) }
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
# With the servers' option for it, a call in void context has no reply.
my @QUIET = qw(set mset add replace delete touch incr decr);

sub calls ($class) {
    return {%CALLS, map { ("${_}_noreply" => [$CALLS{$_}[0], 'none']) } @QUIET};
}

sub connect ($self) {
    my $quiet = grep { /_noreply$/ } keys $self->{tape}{kinds}->%*;
    my %own   = $self->common ? (io_timeout => $self->timeout_s, connect_timeout => $self->timeout_s) : ();
    $own{ketama_points} = KETAMA_POINTS if $self->option('hashing', 'default') eq 'ketama';
    $self->{cache} = Cache::Memcached::Fast->new({
        servers => [map { { address => $_, $quiet ? (noreply => 1) : () } } $self->addresses], %own,
    });
    $self->reach;
}

sub reach ($self) {
    my $versions = $self->{cache}->server_versions;
    for my $server ($self->{setup}{servers}->@*) {
        die "$server: no connection\n" unless $versions->{ $server =~ s/^unix://r };
    }
    $self->watch_sockets;
}

my %READS = map { $_ => 1 } qw(get gets gat mget cas);

sub failed ($self, $op, $got) {
    return 0 if defined $got;    # the server said no
    return CONNECTION unless $self->is_sound;
    return $READS{ $op->[KIND] } ? 0 : CLIENT;
}

# A value with its token, then the new value; the result of both. The value is verified at the place where a program
# uses it.
sub swap ($self, $op, $key, $value, $exptime) {
    my $read = $self->{cache}->gets($key) or return $self->failed($op, undef);
    my $right  = Verify::right($self, $op->[NUMBERS][0], $read->[1]);
    my $stored = $self->{cache}->cas($key, $read->[0], $value, $exptime);
    return wrong($self, $read->[1]) unless $right;
    return $op->[CODE] if $stored;
    return defined $stored ? 1 | REFUSED : CONNECTION;
}

# Send `version` on each connection; the number of answers.
sub barrier ($self) {
    my $answered = keys $self->{cache}->server_versions->%*;
    return $answered || undef;
}

1;
