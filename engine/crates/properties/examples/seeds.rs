//! Writes the seeds of every fuzz target: `seeds FOLDER` writes FOLDER/TARGET/seed-N and prints the names of the
//! targets.

#![allow(clippy::print_stdout, reason = "an example for developers")]

use std::path::PathBuf;

use cachemark_properties::TARGETS;

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "corpus".to_owned()));
    for target in TARGETS {
        let into = folder.join(target.name);
        std::fs::create_dir_all(&into)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            std::fs::write(into.join(format!("seed-{number}")), seed)?;
        }
        println!("{}", target.name);
    }
    Ok(())
}
