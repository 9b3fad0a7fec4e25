# The tape: its tables, checked before they are trusted (docs/tape.md), and its records as operations.
package Tape;
use v5.36;

use Exporter 'import';
use Verify;
use Generations qw(value allows begins may_have_flags);
use List::Util qw(any max sum0 uniqnum);
use Operation;

our @EXPORT_OK = qw(every_kind);

use constant { HEADER_BYTES => 184, RECORD_BYTES => 16, VERSION => 2, COUNTER => '1000000000' };
my %VERBS = (
    1, 'get', 2, 'gets', 3, 'mget', 4, 'set', 5, 'add', 6, 'replace', 7, 'delete', 8, 'touch', 9, 'gat',
    10, 'version', 11, 'mset', 14, 'cas', 15, 'incr', 16, 'decr',
);
my %MAY_BE_QUIET = map { $_ => 1 } qw(set add replace delete touch mset incr decr);
my %BATCH        = map { $_ => 1 } qw(mget mset);
my %STEP         = map { $_ => 1 } qw(incr decr);
my %READ         = map { $_ => 1 } qw(get gets mget gat);

# Every kind of operation that a tape can hold.
sub every_kind () {
    return (map { $VERBS{$_} } sort { $a <=> $b } keys %VERBS), map { "${_}_noreply" } sort keys %MAY_BE_QUIET;
}

sub check ($holds, $what, $at) {
    die {kind => 'tape', text => "the tape has $what (at byte $at)"} unless $holds;
}

# Read a file. Dies with an error of kind `tape` that names the failed check and its place.
sub new ($class, $path) {
    open my $file, '<:raw', $path or die {kind => 'tape', text => "$path: $!"};
    my $data = do { local $/; <$file> } // '';
    check(length $data >= HEADER_BYTES, 'no header of 184 bytes', 0);
    my ($magic, $version, $header_bytes) = unpack 'a8 V2', $data;
    check($magic eq "CMTAPE\0\0", 'no magic', 0);
    check($version == VERSION, 'another version than ' . VERSION, 8);
    check($header_bytes == HEADER_BYTES, 'a header of another length', 12);
    my $self = bless {data => $data, kinds => {}, repeats => 0}, $class;
    my %at;
    (
        my ($size, $seed, $key_count), $self->{prefill_count}, $self->{op_count}, my ($run_count, $pool_bytes),
        $self->{period_ns}, @at{qw(offsets keys)}, my $key_bytes, @at{qw(lengths pool ops runs times)},
        $self->{exptime_s}, my $flags, $self->{group}, my $counter_count, $at{thinks},
    ) = unpack 'Q<21', substr $data, 16, HEADER_BYTES - 16;
    check($size == length $data, 'another length than it says', 16);
    check($key_count > 0 && $key_count < 1 << 32, 'no possible number of keys', 32);
    check($self->{prefill_count} <= $key_count, 'more keys to store than it has', 40);
    check($self->{op_count} > 0, 'no operations', 48);
    check($self->{exptime_s} < 1 << 32, 'no possible expiry time', 144);
    check(!($flags & 0xffff_fffe), 'unknown flags', 152);
    check($self->{group} > 0 && $self->{op_count} % $self->{group} == 0, 'no whole number of groups', 160);
    check($counter_count <= $key_count, 'more counters than keys', 168);
    check(!!$at{times} eq !!$self->{period_ns}, 'times without a period, or a period without times', 72);
    check(!$at{times} || !$at{thinks}, 'both times and think times', 176);
    @$self{qw(lanes any_generation)} = ($flags >> 32, 0);    # see `allows`
    @$self{qw(verified counter_from open_loop thinks)} = (!($flags & 1), $key_count - $counter_count, $at{times} != 0, $at{thinks} != 0);
    $self->{keys}    = $self->read_keys(@at{qw(offsets keys)}, $key_bytes, $key_count);
    $self->{lengths} = [$self->table('V', 4, 104, $key_count)];
    $self->{pool}    = $self->section(112, 1, $pool_bytes);
    $self->{runs}    = [$self->table('V', 4, 128, $run_count)];
    $self->check_lengths($at{lengths});
    check(max(0, $self->{runs}->@*) < $key_count, 'a run of unknown keys', $at{runs});
    $self->{records} = $self->section(120, RECORD_BYTES, $self->{op_count});
    $self->check_record($_, $at{ops}) for 0 .. $self->{op_count} - 1;
    $self->{times} = [$self->{open_loop} ? $self->table('Q<', 8, 136, $self->{op_count}) : ()];
    $self->check_times($at{times});
    $self->section(176, 8, $self->{op_count}) if $self->{thinks};
    delete @$self{qw(data seen)};
    return $self;
}

# The bytes of a section; `$field` is the header's place of the number that is the section's begin.
sub section ($self, $field, $width, $count) {
    my $at     = unpack 'Q<', substr $self->{data}, $field, 8;
    my $room   = length($self->{data}) - $at;
    my $inside = $at >= HEADER_BYTES && $at % 8 == 0 && $room >= 0 && $count <= $room / $width;
    check($inside, 'a section outside the file', $field);
    return substr $self->{data}, $at, $width * $count;
}

sub table ($self, $code, $width, $field, $count) {
    return unpack "$code*", $self->section($field, $width, $count);
}

sub read_keys ($self, $offsets_at, $keys_at, $bytes, $count) {
    my @offsets = $self->table('V', 4, 80, $count + 1);
    my $text    = $self->section(88, 1, $bytes);
    check($text !~ /[\x00-\x20\x7f]/, 'a key with white space or a control character', $keys_at);
    check($offsets[-1] <= $bytes, 'a key outside its table', $offsets_at);
    my @keys;
    for my $k (0 .. $count - 1) {
        my $length = $offsets[$k + 1] - $offsets[$k];
        check($length > 0 && $length <= 250, 'a key of a wrong length', $offsets_at + 4 * $k);
        push @keys, substr $text, $offsets[$k], $length;
    }
    return \@keys;
}

sub check_lengths ($self, $at) {
    my $lengths  = $self->{lengths};
    my @counters = @$lengths[$self->{counter_from} .. $#$lengths];
    check(max(@$lengths) <= length $self->{pool}, 'a length beyond the pool', $at);
    check(!(any { $_ != length COUNTER } @counters), 'a counter of another length', $at);
}

# Also collects the kinds on the tape, and whether a batch names a key twice.
sub check_record ($self, $j, $ops_at) {
    my $record = substr $self->{records}, RECORD_BYTES * $j, RECORD_BYTES;
    return if $self->{seen}{$record}++;
    my $at = $ops_at + RECORD_BYTES * $j;
    my ($verb, $flags, $run, $key, $length) = unpack 'C2 v V2', $record;
    my $name = $VERBS{$verb};
    check(defined $name, "an unknown verb $verb", $at);
    my $quiet = $flags & 1;
    check(may_have_flags($self, $name, $flags, $MAY_BE_QUIET{$name}), 'bad flags', $at);
    check($BATCH{$name} ? $run > 0 : $run == ($name eq 'version' ? 0 : 1), 'a wrong run', $at);
    my $limit = $BATCH{$name} ? $self->{runs}->@* : $self->{keys}->@*;
    check($run == 0 || $key + $run <= $limit, 'an unknown key', $at);
    check($STEP{$name} || $length <= length $self->{pool}, 'a length beyond the pool', $at);
    my @keys = $BATCH{$name} ? $self->{runs}->@[$key .. $key + $run - 1] : ($key) x $run;
    my $mixed = any { ($_ >= $self->{counter_from}) != !!$STEP{$name} } @keys;
    check($name eq 'delete' || !$mixed, 'counters and other keys mixed up', $at);
    $self->{kinds}{ $name . ($quiet ? '_noreply' : '') }++;
    $self->{repeats} ||= uniqnum(@keys) < @keys;
}

sub check_times ($self, $at) {
    my $before = 0;
    for my $due ($self->{times}->@*) {
        check($due >= $before && $due < $self->{period_ns}, 'times out of order', $at);
        $before = $due;
    }
}

# The records of a lane, in order: their numbers.
sub numbers ($self, $lane, $lanes) {
    my $group = $self->{group};
    my @first = map { $group * $_ } grep { $_ % $lanes == $lane } 0 .. $self->{op_count} / $group - 1;
    return map { $_ .. $_ + $group - 1 } @first;
}

# A lane's operations, in order, and when they are due. Equal records share one operation.
sub lane ($self, $lane, $lanes) {
    my @numbers = $self->numbers($lane, $lanes);
    my @records = map { substr $self->{records}, RECORD_BYTES * $_, RECORD_BYTES } @numbers;
    my %made    = map { $_ => undef } @records;
    $made{$_} = $self->operation($_) for keys %made;
    my @dues = $self->{open_loop} ? $self->{times}->@[@numbers] : ();
    return {ops => [@made{@records}], dues => \@dues};
}

# The writes that store a lane's keys in the prefill.
sub prefill ($self, $lane, $lanes) {
    my @keys = grep { $_ % $lanes == $lane } 0 .. $self->{prefill_count} - 1;
    my @ops  = map { $self->operation(pack 'C2 v V3', 4, 0, 1, $_, $self->{lengths}[$_], $self->{exptime_s}) } @keys;
    return {ops => \@ops, dues => []};
}

sub operation ($self, $record) {
    my ($verb, $flags, $run, $first, $length, $exptime_s) = unpack 'C2 v V3', $record;
    my $name    = $VERBS{$verb};
    my @numbers = $BATCH{$name} ? $self->{runs}->@[$first .. $first + $run - 1] : ($first) x $run;
    my @keys    = $self->{keys}->@[@numbers];
    my @lengths = $self->{lengths}->@[@numbers];
    my @op;
    @op[KIND, KEY, KEYS, NUMBERS, EXPTIME] = ($name . ($flags & 1 ? '_noreply' : ''), $keys[0], \@keys, \@numbers, $exptime_s);
    $op[GENERATION] = $flags >> 1;
    $op[AMOUNT]    = $STEP{$name} ? $length : 0;
    $op[LENGTH]    = $STEP{$name} ? 0 : $READ{$name} ? $lengths[0] : $length;
    $op[KEY_BYTES] = length join '', @keys;
    $op[CODE]      = ok_code($op[KIND], $BATCH{$name} ? sum0(@lengths) : $op[LENGTH], scalar @keys);
    return \@op;
}

# The value that an operation writes, or that a read must bring.
sub written ($self, $op) {
    my ($number) = $op->[NUMBERS]->@* or return '';
    return COUNTER if $number >= $self->{counter_from} && $op->[LENGTH];
    return $self->value($number, $op->[LENGTH], $op->[GENERATION]);
}

# The values of a batch.
sub values_of ($self, $op) {
    return map { $self->value($_, $self->{lengths}[$_]) } $op->[NUMBERS]->@*;
}

1;
