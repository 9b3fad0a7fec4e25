//! The verb `fidelity`: checks the native client, by playing cases with known results in virtual time.

mod document;
mod table;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use cachemark_command::process::{fail, print_compact_json, print_text};
use cachemark_fidelity::{CASES, Case, Check};

use document::document;

/// Examples:
///
///   cachemark-engine fidelity
///
///   cachemark-engine fidelity F5 F16
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Play these cases only; F5 includes F5b, F5c …
    cases: Vec<String>,
    /// Print one JSON document for each case: its checks, and the trial as a worker reports it
    #[arg(long)]
    json: bool,
    /// Print all checks, also of counts and of single times
    #[arg(long)]
    all: bool,
}

/// Run the verb. The exit code is 1 if a case does not have its result, 2 for bad input.
pub fn run(arguments: Arguments) -> ExitCode {
    let asked = |case: &&Case| {
        let named = |name: &String| {
            let rest = case.id.to_lowercase();
            let rest = rest.strip_prefix(&name.to_lowercase());
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        arguments.cases.is_empty() || arguments.cases.iter().any(named)
    };
    let cases: Vec<&Case> = CASES.iter().filter(asked).collect();
    if cases.is_empty() {
        return fail(format!("no case {:?}; the cases are F1 to F32", arguments.cases));
    }
    if cachemark_injected_bugs::ENABLED {
        return fail("this build can inject bugs: it is for tests only".to_owned());
    }
    let mut right = 0;
    let mut table = table::heading();
    for case in &cases {
        progress(case);
        let case_result = (case.play)();
        right += usize::from(case_result.checks.iter().all(Check::holds));
        if arguments.json {
            let document = document(case, &case_result);
            print_compact_json(&document);
        } else {
            table::add_rows(&mut table, case, &case_result, arguments.all);
        }
    }
    if !arguments.json {
        let summary = format!("{right} of {} cases give their answer", cases.len());
        print_text(format_args!("{}\n\n{summary}\n", table.trim_fmt()));
    }
    if right == cases.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn progress(case: &Case) {
    let mut stderr = std::io::stderr().lock();
    if stderr.is_terminal() {
        // A closed stderr is no reason to stop.
        let _ = write!(stderr, "\r\x1b[K{} {}\r", case.id, case.title);
        let _ = stderr.flush();
    }
}
