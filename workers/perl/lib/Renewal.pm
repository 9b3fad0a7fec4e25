# Connections that are closed after a number of calls, and opened again: between two calls, where no time is taken.
package Renewal;
use v5.36;

use List::Util qw(min);

# Has a player's lane renew its connections if that is asked for; undef if it is not.
sub new ($class, $player) {
    my $after = $player->{client}->option('reconnect_after', 0) or return undef;
    my $self  = bless {player => $player, after => $after, made => 0}, $class;
    my $play  = $player->{lane}{play} or return $self;
    $player->{lane}{play} = sub ($from, $to, $until, $odd) {
        $self->renew_in_time;
        my @played = $play->($from, min($to, $from + $after - $self->{made} - 1), $until, $odd);
        $self->{made} += $played[0];
        return @played;
    };
    return $self;
}

# Before a call: renew the connections if they have had theirs.
sub renew_in_time ($self) {
    my ($player, $made) = @$self{qw(player made)};
    return if $made < $self->{after};
    my ($client, $record) = @$player{qw(client record)};
    $record->{barriers} += $client->barrier // 0 if $player->{quiet};    # what had no reply must arrive before
    eval { $client->renew; 1 } or die {kind => 'connect', text => $@ =~ s/\s+$//r};
    $record->{renewed} += $player->{setup}{servers}->@*;
    $self->{made} = 0;
}

1;
