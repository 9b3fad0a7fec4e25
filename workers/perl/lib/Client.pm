# The base of every client file; ../README.md says what it must contain. A client file has the facts of its
# library and, for each kind of operation, the Perl text that a program would have, with the form of its
# answer (see Verify). That text is compiled into the measured loop, so nothing stands between the loop and
# the library. It may use $cache, $client, the operation $op and its parts: $key, $value, $exptime, $amount,
# @{$keys}, and @{$items}: [key, value, exptime] of each key of a batch.
package Client;
use v5.36;

use FindBin;
use Verify;
use Operation;

# Why the library cannot be used here, with the remedy; undef if it can.
sub absent ($class) {
    my $module = $class->MODULE // return undef;
    return undef if eval "require $module; 1";
    my ($error) = split /\n/, $@;
    my $file    = ($module =~ s{::}{/}gr) . '.pm';
    my $reason  = $error =~ /^Can't locate \Q$file\E in/ ? "Perl has no $module" : "$module cannot be loaded: $error";
    return {reason => $reason, remedy => 'apt-get install ' . $class->PACKAGE};
}

sub MODULE ($class) { undef }
sub WIRES ($class)  { 'text' }

# Some of `unix`, `cluster`, `open_loop`.
sub FEATURES ($class) { 'open_loop' }

# Options with the pattern of their values.
sub OPTIONS ($class) { () }
sub VERSION_TEXT ($class) { $class->MODULE->VERSION }
sub in_process ($class)   { $class->WIRES eq 'none' }

# The client's own reason against a trial; undef without one.
sub refuse ($class, $setup, $tape) { undef }

# Connect. Dies with a text that names the server.
sub new ($class, $setup, $tape) {
    my $self = bless {setup => $setup, tape => $tape, cache => undef}, $class;
    $self->connect;
    return $self;
}

sub connect ($self) { }

sub option ($self, $name, $default) { $self->{setup}{options}{$name} // $default }
sub common ($self)                  { $self->option('profile', 'common') eq 'common' }
sub timeout_s ($self)               { $self->{setup}{timeout_ms} / 1000 }

# Addresses in the form that the Perl clients take.
sub addresses ($self) { map { s/^unix://r } $self->{setup}{servers}->@* }

# Close the connections, and open them again. Dies with a text that names the server.
sub renew ($self) {
    $self->{cache}->disconnect_all;
    $self->reach;
}

# The Perl text for a variable of an operation.
sub field ($self, $name, $op) {
    my ($tape, $keys) = ($self->{tape}, $op->[KEYS]);
    return $op->[KEY]             if $name eq 'key';
    return $tape->written($op)    if $name eq 'value';
    return $op->[EXPTIME]         if $name eq 'exptime';
    return $op->[AMOUNT]          if $name eq 'amount';
    return $op->[CODE]            if $name eq 'code';
    return $keys                  if $name eq 'keys';
    my @values = $tape->values_of($op);
    return [map { [$keys->[$_], $values[$_], $op->[EXPTIME]] } 0 .. $#values];
}

# The result of an answer other than the expected one: 0 if it is an answer (a miss), or a failure.
sub failed ($self, $op, $got) { 0 }

# Perl's messages for a mistake in a program.
my @MISTAKES = (
    q(Can't (?:call method|locate object method|use )), 'Undefined subroutine', 'Not an? \w+ reference',
    'Too (?:many|few) arguments', 'Modification of a read-only', 'Illegal division',
);
my $MISTAKE = do { my $any = join '|', @MISTAKES; qr/^(?:$any)/ };

# The result of a call that died. A mistake in this worker's own code, such as a client file, ends the run.
sub error_code ($self, $op, $error) {
    my ($place) = $error =~ / at (\S+ (?:\d+\) )?line \d+)\.?$/m;
    my $own = ($place // '') =~ /^(?:\Q$FindBin::Bin\E|\(eval)/;
    return $self->thrown($op, $error) unless $own && $error =~ $MISTAKE;
    die {kind => 'internal', text => $error =~ s/\s+$//r};
}

# The fault kind of a call in which the library died.
sub thrown ($self, $op, $error) {
    print STDERR "$op->[KIND]: $error";
    return CLIENT;
}

# Send commands with a reply after operations without one; their number.
sub barrier ($self) { 0 }

1;
