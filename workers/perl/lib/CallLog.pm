# The call log of docs/call-log.md. Each record is written when its call ends: a hanging player could not
# write it later.
package CallLog;
use v5.36;

use MIME::Base64 ();
use Operation;
use Verify;

use constant { MOST_RECORDS => 1 << 20, MOST_WRONG_REPLIES => 16, MOST_WRONG_BYTES => 4096 };
use constant { OK => 0, MISS => 1 };

my %READS = map { $_ => 1 } qw(get gets mget gat);

# The log of a player's run; undef if the run asks for none.
sub of_run ($class, $player, $request) {
    my ($path, $tape) = ($request->{calls} // '', $player->{tape});
    return undef if $path eq '' || $request->{phase} eq 'prefill' || !$tape->{open_loop};
    open my $file, '>:raw', $path or die {kind => 'internal', text => "$path: $!"};
    syswrite $file, "CMCALLS\0" . pack 'V2', 1, 32;
    return bless {
        file   => $file, client => $player->{client}, timeout_s => $player->timeout_s, left => MOST_RECORDS, wrong => [],
        numbers => [$tape->numbers($player->{setup}{segment}->@*)],    # the lane's records on the tape
    }, $class;
}

# Note a call of the lane's operation at a place. `$odd`: its result, unless it was as expected.
sub note ($self, $place, $op, $odd, $began_s, $took_s) {
    return if $self->{left}-- <= 0;
    $took_s = unpack 'f', pack 'f', $took_s;    # rounded as in the recorder
    my $number = $self->{numbers}[$place];
    my $code   = $took_s >= $self->{timeout_s} ? TIMEOUT : $odd // $op->[CODE];
    my $size   = $code < 0 ? 0 : $code >> SIZE_BIT;
    my @times  = map { int 0.5 + 1e9 * $_ } $began_s, $took_s;
    syswrite $self->{file}, pack 'Q<2 V2 v C x5', @times, $number, $size, 0, outcome($op, $code);
    $self->note_wrong($number, $self->{client}{wrong}) if $code == WRONG_VALUE;
}

sub note_wrong ($self, $number, $value) {
    return if $self->{wrong}->@* == MOST_WRONG_REPLIES;
    utf8::encode($value) unless utf8::downgrade($value, 1);
    my $text = MIME::Base64::encode_base64(substr($value, 0, MOST_WRONG_BYTES), '');
    push $self->{wrong}->@*, {record => $number, value => $text};
}

# The outcomes of failures have the order of the codes.
sub outcome ($op, $code) {
    return 1 - $code if $code < 0;
    return $READS{ $op->[KIND] } && !($code & FOUND_MASK) ? MISS : OK;
}

1;
