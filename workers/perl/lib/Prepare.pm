# The request `prepare`, and the refusals before the prefill.
package Prepare;
use v5.36;

sub new ($class, $request) {
    my $self = bless {
        wire    => 'text', threads => 1, connections => 1, depth => 1, segment => [0, 1], timeout_ms => 1000,
        options => {}, %$request,
    }, $class;
    for my $number ($self->@{qw(threads connections depth timeout_ms)}, $self->{segment}[1]) {
        die {kind => 'protocol', text => 'prepare: a number that means nothing'} unless ($number // '') =~ /^[1-9][0-9]*$/a;
    }
    die {kind => 'protocol', text => 'prepare: no tape'} unless defined $self->{tape};
    die {kind => 'protocol', text => 'prepare: no list of servers'} unless ref $self->{servers} eq 'ARRAY';
    return $self;
}

# Why a client cannot do this; undef if it can.
sub refusal ($self, $class, $tape) {
    my ($calls, @servers) = ($class->calls, $self->{servers}->@*);
    my %can     = map { $_ => 1 } $class->FEATURES;
    my @missing = sort grep { !$calls->{$_} } keys $tape->{kinds}->%*;
    my $wires   = join ', ', $class->WIRES;
    my @reasons = (
        @missing                                                && 'no ' . join(', ', @missing),
        $tape->{thinks}                                         && 'no time to think between operations',
        $wires !~ /\b\Q$self->{wire}\E\b/                       && "no wire $self->{wire}, only $wires",
        $class->in_process && @servers                          && 'it is in this process and takes no servers',
        !$class->in_process && !@servers                        && 'it needs a server',
        @servers > 1 && !$can{cluster}                          && 'one server only',
        (grep { /^unix:/ } @servers) && !$can{unix}             && 'no Unix sockets',
        (grep { /^\[/ } @servers)                               && 'no IPv6 addresses in brackets',
        $self->{threads} > 1                                    && 'one caller in each process',
        $self->{depth} > 1                                      && 'one operation at a time on a connection (depth 1)',
        !$class->in_process && $self->{connections} > 1         && 'one connection to each server',
        $self->unknown_option($class),
    );
    my ($reason) = grep { $_ } @reasons;
    return $reason || $class->refuse($self, $tape);
}

sub unknown_option ($self, $class) {
    my %patterns = (profile => 'common|defaults', $class->OPTIONS);
    $patterns{reconnect_after} = '[1-9][0-9]{0,14}(?#a number from 1 on)' unless $class->in_process;
    for my $name (sort keys $self->{options}->%*) {
        my $pattern = $patterns{$name} // return "no option $name";
        my $words = $pattern =~ /\(\?#(.+)\)$/ ? $1 : $pattern;
        return "option $name is $words, not $self->{options}{$name}" if $self->{options}{$name} !~ /^(?:$pattern)\z/;
    }
    return undef;
}

1;
