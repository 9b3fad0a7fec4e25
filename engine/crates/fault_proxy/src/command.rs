//! Commands to the proxy: one JSON object on a line.

use serde_json::Value;

use crate::fault::Fault;
use crate::kinds;

/// The longest line of a command.
pub const MAX_COMMAND_BYTES: usize = 64 * 1024;

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Start a fault, in place of the one that is in force.
    Start {
        fault: Fault,
        /// The fault as it was written, for the log.
        written: Value,
    },
    /// End the fault.
    End,
}

/// Parse a line: `{"fault": {"kind": …, parameters}}` or `{"fault": null}`.
pub fn parse_command(line: &str) -> Result<Command, String> {
    if line.len() > MAX_COMMAND_BYTES {
        return Err(format!("a command has {MAX_COMMAND_BYTES} bytes at most"));
    }
    let document: Value =
        serde_json::from_str(line).map_err(|error| format!("no JSON: {error}"))?;
    let fields = document.as_object().ok_or("a command is an object with the field fault")?;
    if let Some(other) = fields.keys().find(|name| *name != "fault") {
        return Err(format!("{other}: no such field; a command has the field fault"));
    }
    match fields.get("fault") {
        Some(Value::Null) => Ok(Command::End),
        Some(Value::Object(object)) => Ok(Command::Start {
            fault: kinds::fault(object)?,
            written: Value::Object(object.clone()),
        }),
        Some(_) => Err("fault: it must be an object with a kind, or null".to_owned()),
        None => Err("a command is an object with the field fault".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_starts_and_ends() {
        let written = serde_json::json!({"kind": "drip", "interval_us": 5});
        let line = format!("{{\"fault\": {written}}}");
        let fault = Fault::Drip { interval_us: 5 };
        assert_eq!(parse_command(&line), Ok(Command::Start { fault, written }));
        assert_eq!(parse_command(r#"{"fault": null}"#), Ok(Command::End));
    }

    #[test]
    fn a_wrong_command_is_explained() {
        for (line, error) in [
            ("", "no JSON: "),
            ("{", "no JSON: "),
            ("[]", "a command is an object with the field fault"),
            ("{}", "a command is an object with the field fault"),
            (r#"{"fault": 7}"#, "fault: it must be an object with a kind, or null"),
            (r#"{"fault": null, "at": 1}"#, "at: no such field; a command has the field fault"),
            (r#"{"fault": {"kind": "x"}}"#, "x: no such kind; there are blackhole, "),
        ] {
            let found = parse_command(line).expect_err(line);
            assert!(found.starts_with(error), "{found}");
        }
        let long = format!("{{\"fault\": null{}}}", " ".repeat(MAX_COMMAND_BYTES));
        assert!(parse_command(&long).is_err());
    }
}
