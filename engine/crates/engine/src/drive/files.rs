//! The files that `drive` writes: percentiles in HdrHistogram's form, and its interval log.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cachemark_command::whole_file::{self, write_error};
use cachemark_load::{Interval, Metrics, encode_histogram};
use hdrhistogram::Histogram;

/// Steps for each halving of the distance to 100 %, as in HdrHistogram's own output.
const TICKS_PER_HALF_DISTANCE: u32 = 5;
const NS_PER_MS: f64 = 1e6;

/// Check before the window that the file can be written.
pub fn check_hgrm(path: &Path) -> Result<(), String> {
    whole_file::check(path).map_err(|error| write_error("--hgrm", path, &error))
}

/// Write a table for each kind of operation, with response times in ms.
pub fn write_hgrm(path: &Path, metrics: &Metrics) -> Result<(), String> {
    let mut text = String::new();
    for (name, kind) in metrics.kinds().filter(|(_, kind)| !kind.response.is_empty()) {
        let _ = write!(text, "#[{name}: response times in ms]\n{}", hgrm(&kind.response));
    }
    whole_file::write(path, text.as_bytes()).map_err(|error| write_error("--hgrm", path, &error))
}

fn hgrm(times: &Histogram<u64>) -> String {
    let mut text = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let mut upto = 0;
    for step in times.iter_quantiles(TICKS_PER_HALF_DISTANCE) {
        upto += step.count_since_last_iteration();
        let (value, share) =
            (step.value_iterated_to() as f64 / NS_PER_MS, step.quantile_iterated_to());
        let _ = write!(text, "{value:12.3} {share:.12} {upto:10}");
        let _ = match share < 1.0 {
            true => writeln!(text, " {:14.2}", 1.0 / (1.0 - share)),
            false => writeln!(text),
        };
    }
    let (mean, deviation) = (times.mean() / NS_PER_MS, times.stdev() / NS_PER_MS);
    let (max, count) = (times.max() as f64 / NS_PER_MS, times.len());
    let _ = writeln!(text, "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]");
    let _ = writeln!(text, "#[Max     = {max:12.3}, Total count    = {count:12}]");
    text
}

/// An open interval log: response times in ns, with a tag for each kind of operation.
pub struct Log {
    path: PathBuf,
    out: BufWriter<File>,
    begun: Duration,
    passed: Duration,
}

impl Log {
    /// Begin the log of a window that starts now.
    pub fn begin(path: &Path) -> Result<Log, String> {
        let failed = |error| write_error("--hlog", path, &error);
        let mut out = BufWriter::new(File::create(path).map_err(failed)?);
        let begun = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let columns = "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"";
        writeln!(
            out,
            "#[Histogram log format version 1.3]\n#[cachemark-engine drive: response times in \
             ns]\n#[StartTime: {:.3} (seconds since epoch)]\n{columns}",
            begun.as_secs_f64()
        )
        .map_err(failed)?;
        Ok(Log { path: path.to_owned(), out, begun, passed: Duration::ZERO })
    }

    /// Add an interval.
    pub fn add(&mut self, interval: &Interval) -> Result<(), String> {
        let start = (self.begun + self.passed).as_secs_f64();
        let length = interval.length.as_secs_f64();
        for (name, kind) in interval.metrics.kinds() {
            let Some(encoded) = encode_histogram(&kind.response) else { continue };
            let max = kind.response.max() as f64 / NS_PER_MS;
            writeln!(self.out, "Tag={name},{start:.3},{length:.3},{max:.3},{encoded}")
                .map_err(|error| write_error("--hlog", &self.path, &error))?;
        }
        self.passed += interval.length;
        Ok(())
    }

    pub fn end(mut self) -> Result<(), String> {
        self.out.flush().map_err(|error| write_error("--hlog", &self.path, &error))
    }
}
