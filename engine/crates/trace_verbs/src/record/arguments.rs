//! The options of `record`, and their common use by every kind of recording.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cachemark_command::units;
use cachemark_command::whole_file;
use cachemark_packets::Ports;
use cachemark_trace::{Conversion, Converted, Output};

#[derive(clap::Args)]
pub struct Arguments {
    /// The memcached, as HOST:PORT; or captured packets, pcap or pcapng: a file, or - for stdin
    pub(super) source: String,
    /// The trace to write, in cachemark's own format
    #[arg(long)]
    pub(super) out: PathBuf,
    /// How long to record (60s)
    #[arg(long, value_parser = units::duration)]
    pub(super) duration: Option<Duration>,
    /// End after this number of requests (1m)
    #[arg(long, value_parser = units::whole)]
    pub(super) requests: Option<u64>,
    /// End when memcached has sent this size (1g), or this size of a capture was read: the trace takes about a tenth
    #[arg(long, value_parser = units::bytes)]
    pub(super) size: Option<u64>,
    /// The ports of the memcacheds in a capture, such as 11211,11212 [default: 11211]
    #[arg(long)]
    pub(super) port: Option<Ports>,
    /// Record this share of the keys, with all their requests: 1/100
    #[arg(long, value_parser = units::fraction, default_value = "1/1")]
    pub(super) sample: u32,
    /// Record the items that the memcached holds now, instead of its traffic
    #[arg(long, conflicts_with_all = ["duration", "requests", "size", "port"])]
    pub(super) snapshot: bool,
    /// Write keys as they are, instead of a keyed hash whose key is thrown away
    #[arg(long)]
    pub(super) plain_keys: bool,
    /// Round sizes of values up, to four sizes for each doubling
    #[arg(long)]
    pub(super) round_sizes: bool,
}

impl Arguments {
    /// When a recording ends, in words.
    pub(super) fn end(&self) -> &'static str {
        let is_limited = self.duration.is_some() || self.requests.is_some() || self.size.is_some();
        if is_limited { "until a limit that you gave, or Ctrl-C" } else { "until Ctrl-C" }
    }

    pub(super) fn conversion(&self) -> Conversion {
        Conversion {
            output: Output::Cachemark,
            anonymous: !self.plain_keys,
            rounded: self.round_sizes,
            sampled: self.sample,
            tolerant: true,
            source: None,
        }
    }
}

/// Write a trace. An error is that of the filling, or says that there is no place.
pub(super) fn written(
    out: &Path,
    fill: impl FnOnce(&mut File) -> Result<Converted, String>,
) -> Result<Converted, String> {
    let unwritable = |error| format!("{}: cannot be written: {error}", out.display());
    whole_file::write_with(out, fill).map_err(unwritable)?
}
