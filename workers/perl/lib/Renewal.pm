# Closes connections after a number of calls and opens them again, between two calls, not timed.
package Renewal;
use v5.36;

use List::Util qw(min);

# Makes a player's lane renew its connections, if the option asks for it; undef if not.
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

# Before a call: renew the connections after their last call.
sub renew_in_time ($self) {
    my ($player, $made) = @$self{qw(player made)};
    return if $made < $self->{after};
    my ($client, $record) = @$player{qw(client record)};
    $record->{barriers} += $client->barrier // 0 if $player->{quiet};    # operations without a reply must arrive first
    eval { $client->renew; 1 } or die {kind => 'connect', text => $@ =~ s/\s+$//r};
    $record->{renewed} += $player->{setup}{servers}->@*;
    $self->{made} = 0;
}

1;
