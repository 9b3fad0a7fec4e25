//! Parses memcached's command line, as getopt_long(3) does.

use std::ffi::OsString;

use lexopt::{Arg, Parser};

use crate::memcached::configuration::{Configuration, Ending, FAILURE, failed};
use crate::memcached::options::{Action, CommandOption, OPTIONS};
use crate::memcached::text;

/// Parse the arguments behind the program's name. Words that are no options are ignored.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Configuration, Ending> {
    let mut configuration = Configuration::default();
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(refused)? {
        let option = match argument {
            Arg::Value(_) => continue,
            Arg::Short(letter) => by_letter(letter)?,
            Arg::Long(name) => by_name(name)?,
        };
        apply(option, &mut parser, &mut configuration)?;
    }
    Ok(configuration)
}

fn apply(
    option: &CommandOption,
    parser: &mut Parser,
    to: &mut Configuration,
) -> Result<(), Ending> {
    match &option.action {
        Action::Flag(set) => {
            if option.short == 'v' {
                // `--verbose` may have a value, which says nothing.
                let _ = parser.optional_value();
            }
            set(to);
        }
        Action::Argument(_, set) => {
            let missing = |_| {
                let letter = option.short;
                failed(FAILURE, format!("option requires an argument -- '{letter}'"))
            };
            let value = parser.value().map_err(missing)?;
            set(value.to_string_lossy().trim_start(), to)?;
        }
        Action::Help => return Err(Ending::Printed(text::help())),
        Action::License => return Err(Ending::Printed(text::license())),
        Action::Version => return Err(Ending::Printed(text::version())),
    }
    Ok(())
}

fn by_letter(letter: char) -> Result<&'static CommandOption, Ending> {
    let found = OPTIONS.iter().find(|option| option.short == letter);
    found.ok_or_else(|| failed(FAILURE, format!("invalid option -- '{letter}'")))
}

/// The option of this name, or the only one whose name begins so.
fn by_name(name: &str) -> Result<&'static CommandOption, Ending> {
    if let Some(option) = OPTIONS.iter().find(|option| option.long == name) {
        return Ok(option);
    }
    let mut begun = OPTIONS.iter().filter(|option| option.long.starts_with(name));
    match (begun.next(), begun.next()) {
        (Some(option), None) => Ok(option),
        (Some(_), Some(_)) => Err(failed(FAILURE, format!("option '--{name}' is ambiguous"))),
        (None, _) => Err(failed(FAILURE, format!("unrecognized option '--{name}'"))),
    }
}

fn refused(error: lexopt::Error) -> Ending {
    failed(FAILURE, error.to_string())
}
