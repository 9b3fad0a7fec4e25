//! How fast a trace is read, beside the same trace as CSV: `cargo run --release -p cachemark-trace --example read_speed`.

use std::io::{Cursor, Write, stdout};
use std::time::Duration;

use cachemark_trace::file::TraceReader;
use cachemark_trace::{Conversion, ImportOptions, Output, convert};
use rustix::time::{ClockId, clock_gettime};

const RECORDS: u64 = 2_000_000;
const ROUNDS: u32 = 5;

fn main() {
    let lines = (0..RECORDS).map(|at| {
        let (key, size) = (at * 7919 % 100_003, at % 4096);
        format!(
            "{}.{:06},{},user:{key:012},{size},60\n",
            at / 50_000,
            at % 50_000,
            ["get", "set"][at as usize % 2]
        )
    });
    let csv = "time,op,key,size,ttl\n".to_owned() + &lines.collect::<String>();
    let mut file = Vec::new();
    convert_to(&csv, Output::Cachemark, &mut file);
    let mut best = [Duration::MAX; 3];
    for _ in 0..ROUNDS {
        let times = [
            timed(|| read(&file)),
            timed(|| u64::from(crc32fast::hash(&file))),
            timed(|| convert_to(&csv, Output::Csv, std::io::sink())),
        ];
        best = std::array::from_fn(|at| best[at].min(times[at]));
    }
    let rate = |time: Duration| RECORDS as f64 / time.as_secs_f64() / 1e6;
    let text = format!(
        "cachemark's format  {:6.1} M records for a second of CPU time, {:.1} bytes each\nits checksum alone  {:6.1} M\n\
         CSV to CSV          {:6.1} M, {:.1} bytes each; ratio {:.0}\n",
        rate(best[0]),
        file.len() as f64 / RECORDS as f64,
        rate(best[1]),
        rate(best[2]),
        csv.len() as f64 / RECORDS as f64,
        best[2].as_secs_f64() / best[0].as_secs_f64()
    );
    stdout().write_all(text.as_bytes()).expect("stdout");
}

fn convert_to(csv: &str, output: Output, into: impl Write) -> u64 {
    let conversion = Conversion {
        output,
        anonymous: false,
        rounded: false,
        sampled: 1,
        tolerant: false,
        source: None,
    };
    let options = ImportOptions::default();
    convert(&mut Cursor::new(csv), &options, &conversion, into, &mut |_| ())
        .expect("a trace")
        .records
}

/// A sum over all fields, so that none is left undecoded.
fn read(file: &[u8]) -> u64 {
    let mut reader = TraceReader::new(file).expect("our own file");
    let mut sum = 0_u64;
    while let Some(block) = reader.next_block().expect("our own file") {
        for record in block {
            let record = record.expect("our own file");
            let first = u64::from(record.key[record.key.len() - 1]);
            sum = sum.wrapping_add(record.at_ns.unwrap_or(0)).wrapping_add(first);
            sum = sum
                .wrapping_add(u64::from(record.length.unwrap_or(0) + record.ttl_s + record.count));
        }
    }
    sum
}

fn timed(work: impl FnOnce() -> u64) -> Duration {
    let began = cpu_time();
    std::hint::black_box(work());
    cpu_time() - began
}

/// Of this thread: other programs on the machine do not count.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
