# The measured loop, compiled for the operations of a lane: between two readings of the clock there is
# only the client's own text. The loop calls a verifier only for an unexpected answer; for the others it
# records only their durations.
#
# A variable of the text, such as $key, is an array in the order of play, so that the loop walks through
# memory: following references from operation to operation would cost more than the rest of the loop.
package Lane;
use v5.36;

use Verify;
use List::Util qw(sum0 uniq);
use Operation;
use Time::HiRes ();

# A lane creates values before the window unless they would take more memory than this.
use constant HELD_BYTES => 1 << 29;

# The most operations that are played between two looks at the world.
use constant BATCH => 4096;

my $LOOP = <<'PERL';
my $clock = Time::HiRes::CLOCK_MONOTONIC;
my @took  = my @begins = (0.5) x BATCH;    # made here, so that the window makes nothing
# Plays operations $from to $to, at most BATCH, until an instant. Returns their number, the begin and end of the last
# one, each duration, and each begin if groups are timed. Unexpected answers go to $odd: position, result.
sub ($from, $to, $until, $odd) {
    my ($n, $got, $began, $ended) = (-1, undef, 0, 0);
    while ($from + $n < $to && $ended < $until) {
        next if eval {
            for my $i ($from + $n + 1 .. $to) {
                BODY
                last if $ended >= $until;
            }
            1;
        };
        ($took[++$n], $begins[$n]) = (($ended = Time::HiRes::clock_gettime($clock)) - $began, $began);
        push @$odd, $n, $client->error_code($ops->[$from + $n], $@);
        $client->{tape}{any_generation} = 1;    # if it was a write, it may still arrive
    }
    return ($n + 1, $began, $ended, \@took, \@begins);
}
PERL

# One kind. Only the part between the two readings of the clock is timed. NOTE is empty unless groups are timed,
# VERIFY if there is nothing to verify.
my $PLAY = <<'PERL';
BEFORE
$began = Time::HiRes::clock_gettime($clock);
CALL;
$took[++$n] = ($ended = Time::HiRes::clock_gettime($clock)) - $began;
NOTE
next if $ended < $until && EXPECTED;
VERIFY
PERL

# A failed write may still arrive, so reads may then bring any generation.
my $JUDGE = '$client->{tape}{any_generation} = 1 if $odd->[-1] < WRONG_VALUE;';

# A loop for operations; `$grouped`: it records the begin of each.
sub compile ($client, $ops, $grouped) {
    my $cache = $client->{cache};
    my (%count, %verify, %branch, %array);
    $count{ $_->[KIND] }++ for @$ops;
    my @kinds = sort { $count{$b} <=> $count{$a} } keys %count;
    my $lean  = HELD_BYTES < sum0 map { $_->[CODE] >> SIZE_BIT } @$ops;
    for my $kind (@kinds) {
        my ($text, $form) = $client->calls->{$kind}->@*;
        (my $expected, $verify{$kind}) = $Verify::FORMS{$form}->@*;
        $branch{$kind} = _branch($kind, $text, $expected, $grouped, $lean, \%array);
    }
    for my $name (keys %array) {
        $array{$name} = [map { $client->field($name, $_) } @$ops];
    }
    # A number for each kind, the most frequent first.
    my %number = map { $kinds[$_] => $_ } 0 .. $#kinds;
    my @number = map { $number{ $_->[KIND] } } @$ops;
    my %test   = map { $_ => $number{$_} ? "\$number[\$i] == $number{$_}" : '!$number[$i]' } @kinds;
    my $cases  = join ' els', map { "if ($test{$_}) {\n$branch{$_}}" } @kinds;
    my $body   = @kinds == 1 ? $branch{ $kinds[0] } : $cases;
    my $arrays = join '', map { "my \@$_ = \$array{'$_'}->\@*;\n" } keys %array;
    my $code   = $arrays . $LOOP =~ s/BODY/$body/r;
    return eval $code || die "the loop does not compile: $@\n$code";
}

# Also collects the arrays that it needs. If memory is short, it creates values just before their turn.
sub _branch ($kind, $text, $expected, $grouped, $lean, $arrays) {
    my $call  = $kind =~ /_noreply$/ ? $text : "\$got = $text";
    my @names = uniq "$call $expected" =~ /\$(key|value|exptime|amount|code|keys|items)\b/g;
    my @late  = grep { $lean && /^(?:value|items)$/ } @names;
    my %part  = (
        BEFORE => join('', map { "my \$$_ = \$client->field('$_', \$op);" } @late),
        CALL   => $call, EXPECTED => $expected,
        NOTE   => $grouped         ? '$begins[$n] = $began;' : '',
        VERIFY => $expected eq '1' ? ''                      : "unless ($expected) { push \@\$odd, \$n, \$verify{$kind}->(\$client, \$op, \$got); $JUDGE }",
    );
    my $branch = $PLAY =~ s/(BEFORE|CALL|NOTE|EXPECTED|VERIFY)/$part{$1}/gr;
    for my $name (grep { !($lean && /^(?:value|items)$/) } @names) {
        $arrays->{$name} = undef;
        $branch =~ s/\$$name\b/\$${name}[\$i]/g;
    }
    return $branch =~ s/\$op\b/\$ops->[\$i]/gr;
}

1;
