//! The texts of the options -h, -i and -V.

use std::fmt::Write;

use crate::memcached::extended;
use crate::memcached::options::{Action, OPTIONS};
use crate::serve::embedded::VERSION;

/// As memcached names itself, which its users parse.
pub fn version() -> String {
    format!("memcached {VERSION}\n")
}

pub fn license() -> String {
    format!("{}cachemark is licensed under the Apache License 2.0.\n", version())
}

/// A line for each option, then the names of the extended ones.
pub fn help() -> String {
    let mut out = version();
    for option in &OPTIONS {
        let argument = match &option.action {
            Action::Argument(name, _) => format!("=<{name}>"),
            _ => String::new(),
        };
        let long = match option.long {
            "" => String::new(),
            long => format!(", --{long}"),
        };
        let names = format!("-{}{long}{argument}", option.short);
        let _ = writeln!(out, "{names:<32}{}", option.help);
    }
    let (working, others) = extended::names();
    let _ = writeln!(out, "{}", list("", &working));
    let _ = writeln!(out, "{}", list("without effect: ", &others));
    out
}

/// Names, with commas between, in lines of at most 100 characters.
fn list(title: &str, names: &[&str]) -> String {
    let (mut out, mut line) = (String::new(), format!("   - {title}"));
    for (number, name) in names.iter().enumerate() {
        if line.len() + name.len() > 100 {
            out.push_str(line.trim_end());
            out.push('\n');
            line = "     ".to_owned();
        }
        line.push_str(name);
        if number + 1 < names.len() {
            line.push_str(", ");
        }
    }
    out + &line
}
