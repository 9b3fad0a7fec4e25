# The functions of a run by Devel::NYTProf, for `cachemark why --profile`. It reads the CPU clock at each call
# and return, so a "sample" is a millisecond of CPU time, and short functions seem to take longer.
package Sampler;
use v5.36;

use FindBin;

use constant { CPU_CLOCK => 2, TICKS_OF_SAMPLE => 10_000 };
use constant MISSING => 'no Devel::NYTProf: apt-get install libdevel-nytprof-perl';

my $path = $ENV{CACHEMARK_PROFILE} // '';
my $file = "$path.nytprof";

# Start this program again under the profiler, which comes before all code that it watches.
sub restart () {
    return if !$path || $INC{'Devel/NYTProf.pm'} || !grep { -e "$_/Devel/NYTProf.pm" } @INC;
    local $ENV{NYTPROF} = join ':', 'start=no', 'stmts=0', 'calls=2', 'clock=' . CPU_CLOCK, "file=$file";
    exec $^X, '-d:NYTProf', $0, @ARGV or die $!;
}

# Play a request, and write the stacks of a measured run.
sub sampled ($request, $play) {
    return $play->() if !$path || ($request->{phase} // '') ne 'measure';
    if (!$INC{'Devel/NYTProf.pm'}) {
        written('# missing: ' . MISSING);
        return $play->();
    }
    DB::enable_profile($file);
    my $answer = eval { $play->() };
    my $error  = $@;
    DB::finish_profile();
    die $error unless $answer;
    open my $calls, '-|', 'nytprofcalls', $file or die "nytprofcalls: $!\n";
    my @stacks = map { stack($_) } <$calls>;
    close $calls;
    unlink $file;
    written("# sampler: Devel::NYTProf $Devel::NYTProf::VERSION", @stacks);
    return $answer;
}

# A line of nytprofcalls as a stack with its samples; nothing if they are fewer than one.
sub stack ($line) {
    my ($names, $ticks) = $line =~ /^(.*) ([0-9]+)$/ or return;
    my $samples = int($ticks / TICKS_OF_SAMPLE + 0.5) or return;
    return join(';', map { frame($_) } split /;/, $names) . " $samples";
}

# A function with the file of its package.
sub frame ($name) {
    $name =~ s/\[.*//;
    my $package = ($name =~ s/::[^:]*(?::[^:]+)?\z//r) =~ s{::}{/}gr;
    my $own     = -e "$FindBin::Bin/lib/$package.pm" || $package =~ m{^(?:main|Client/)};
    return "$name (" . ($own ? 'cachemark/' : '') . "$package.pm)";
}

sub written (@lines) {
    open my $out, '>', $path or die "$path: $!\n";
    print $out map { "$_\n" } @lines;
    close $out or die "$path: $!\n";
}

1;
