//! `tape show`.

use std::io::{self, BufWriter, Write, stdout};
use std::path::PathBuf;

use cachemark_command::foreign_text::clean;
use cachemark_command::process::end_listing;
use cachemark_tape::Tape;

#[derive(clap::Args)]
pub struct Arguments {
    file: PathBuf,
    /// How many records to print
    #[arg(long, default_value_t = 10)]
    first: u64,
}

pub fn show(arguments: &Arguments) -> Result<(), String> {
    let place = |error| format!("{}: {error}", arguments.file.display());
    let tape = Tape::open(&arguments.file).map_err(place)?;
    end_listing(print(&tape, arguments.first, BufWriter::new(stdout().lock())));
    Ok(())
}

fn print(tape: &Tape, first: u64, mut out: impl Write) -> io::Result<()> {
    writeln!(out, "keys        {}", tape.key_count())?;
    writeln!(out, "prefilled   {}", tape.prefill_count())?;
    writeln!(out, "operations  {}", tape.op_count())?;
    writeln!(out, "pool        {} bytes", tape.pool().len())?;
    writeln!(out, "seed        {}", tape.seed())?;
    writeln!(out, "verified    {}", if tape.verifies_values() { "yes" } else { "no" })?;
    match tape.is_open_loop() {
        true => writeln!(out, "schedule    open loop, {} ns a pass", tape.period_ns())?,
        false if tape.has_think_times() => {
            writeln!(out, "schedule    closed loop, with time to think")?
        }
        false => writeln!(out, "schedule    closed loop")?,
    }
    for j in 0..first.min(tape.op_count()) {
        let op = tape.op(j);
        let keys: Vec<_> =
            tape.run(&op).map(|k| clean(&String::from_utf8_lossy(tape.key(k)))).collect();
        let due =
            if tape.is_open_loop() { format!(" due {} ns", tape.due_ns(j)) } else { String::new() };
        let kind = op.verb.kind(op.noreply);
        writeln!(out, "{j:>10}  {kind:<15} {} bytes{due}  {}", op.length, keys.join(" "))?;
    }
    out.flush()
}
