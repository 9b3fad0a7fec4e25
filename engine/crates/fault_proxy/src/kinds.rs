//! The table of the kinds of faults: their names, their parameters, and what they do.

use std::net::{SocketAddr, ToSocketAddrs};

use serde_json::{Map, Value};

use crate::fault::Fault;

/// The type of a parameter, with its default.
#[derive(Clone, Copy, Debug)]
pub enum ParameterType {
    Whole {
        least: u64,
        most: u64,
        default: u64,
    },
    /// A part of all, above 0 and at most 1.
    Share {
        default: f64,
    },
    Flag {
        default: bool,
    },
    /// host:port. It must be given.
    Address,
}

#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub kind: ParameterType,
    pub meaning: &'static str,
}

pub struct Kind {
    pub name: &'static str,
    /// The fault as a client sees it.
    pub meaning: &'static str,
    pub parameters: &'static [Parameter],
    make: fn(&Arguments) -> Fault,
}

const AFTER_BYTES: Parameter = Parameter {
    name: "after_bytes",
    kind: ParameterType::Whole { least: 0, most: 1 << 30, default: 0 },
    meaning: "how many bytes of replies still pass on each connection",
};
const VALUE_BYTES: Parameter = Parameter {
    name: "after_bytes",
    kind: ParameterType::Whole { least: 0, most: 1 << 30, default: 1 },
    meaning: "how many bytes of the value still pass, at most all but one",
};
const RESET_EXISTING: Parameter = Parameter {
    name: "reset_existing",
    kind: ParameterType::Flag { default: true },
    meaning: "whether connections that exist are reset first",
};

const fn share(default: f64, meaning: &'static str) -> Parameter {
    Parameter { name: "share", kind: ParameterType::Share { default }, meaning }
}

const fn whole(name: &'static str, most: u64, default: u64, meaning: &'static str) -> Parameter {
    Parameter { name, kind: ParameterType::Whole { least: 1, most, default }, meaning }
}

/// Every kind of fault.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "blackhole",
        meaning: "nothing passes either way, connections stay open; held bytes pass when the fault ends",
        parameters: &[AFTER_BYTES],
        make: |given| Fault::Blackhole { after_bytes: given.whole("after_bytes") },
    },
    Kind {
        name: "never-answers",
        meaning: "requests reach the server, replies are lost; a connection that lost a reply stays silent for ever",
        parameters: &[],
        make: |_| Fault::NeverAnswers,
    },
    Kind {
        name: "reset",
        meaning: "all connections are reset",
        parameters: &[Parameter {
            name: "new_too",
            kind: ParameterType::Flag { default: false },
            meaning: "whether new connections are reset too, while the fault lasts",
        }],
        make: |given| Fault::Reset { new_too: given.flag("new_too") },
    },
    Kind {
        name: "reset-in-value",
        meaning: "the connection is reset in the middle of a value",
        parameters: &[share(1.0, "of the values"), VALUE_BYTES],
        make: |given| Fault::ResetInValue {
            share: given.share(),
            after_bytes: given.whole("after_bytes"),
        },
    },
    Kind {
        name: "close-in-value",
        meaning: "the connection is closed in the middle of a value",
        parameters: &[share(1.0, "of the values"), VALUE_BYTES],
        make: |given| Fault::CloseInValue {
            share: given.share(),
            after_bytes: given.whole("after_bytes"),
        },
    },
    Kind {
        name: "truncate-value",
        meaning: "the reply announces a longer value than it has",
        parameters: &[
            share(0.1, "of the values"),
            whole("missing_bytes", 1 << 30, 1, "how many bytes at the value's end are left out"),
        ],
        make: |given| Fault::TruncateValue {
            share: given.share(),
            missing_bytes: given.whole("missing_bytes"),
        },
    },
    Kind {
        name: "drip",
        meaning: "replies arrive a byte at a time",
        parameters: &[whole("interval_us", 10_000_000, 100, "the time from byte to byte")],
        make: |given| Fault::Drip { interval_us: given.whole("interval_us") },
    },
    Kind {
        name: "delay",
        meaning: "replies arrive later, in their order",
        parameters: &[whole("delay_ms", 600_000, 50, "how much later")],
        make: |given| Fault::Delay { delay_ms: given.whole("delay_ms") },
    },
    Kind {
        name: "server-error",
        meaning: "the server has no memory: SERVER_ERROR (binary: status 0x82), and the request has no effect",
        parameters: &[share(0.1, "of the requests that have a reply")],
        make: |given| Fault::ServerError { share: given.share() },
    },
    Kind {
        name: "too-many-connections",
        meaning: "new connections get ERROR Too many open connections, and are closed",
        parameters: &[RESET_EXISTING],
        make: |given| Fault::TooManyConnections { reset_existing: given.flag("reset_existing") },
    },
    Kind {
        name: "garbage-line",
        meaning: "a line that belongs to no protocol comes before a reply",
        parameters: &[share(0.1, "of the replies")],
        make: |given| Fault::GarbageLine { share: given.share() },
    },
    Kind {
        name: "unasked-reply",
        meaning: "a reply is sent twice",
        parameters: &[share(0.1, "of the replies")],
        make: |given| Fault::UnaskedReply { share: given.share() },
    },
    Kind {
        name: "other-key",
        meaning: "instead of its value a read gets an earlier one of its connection, of another key, with that key and opaque",
        parameters: &[share(0.1, "of the values")],
        make: |given| Fault::OtherKey { share: given.share() },
    },
    Kind {
        name: "idle-close",
        meaning: "connections on which nothing happens are closed",
        parameters: &[whole("idle_ms", 600_000, 100, "how long nothing must happen")],
        make: |given| Fault::IdleClose { idle_ms: given.whole("idle_ms") },
    },
    Kind {
        name: "refuse",
        meaning: "no socket listens: new connections are refused",
        parameters: &[RESET_EXISTING],
        make: |given| Fault::Refuse { reset_existing: given.flag("reset_existing") },
    },
    Kind {
        name: "full-backlog",
        meaning: "new connections are not accepted, and wait",
        parameters: &[RESET_EXISTING],
        make: |given| Fault::FullBacklog { reset_existing: given.flag("reset_existing") },
    },
    Kind {
        name: "switch-upstream",
        meaning: "the server's name has a new address: new connections reach another server",
        parameters: &[Parameter {
            name: "to",
            kind: ParameterType::Address,
            meaning: "that server's address",
        }],
        make: |given| Fault::SwitchUpstream { to: given.address("to") },
    },
];

#[derive(Clone, Copy)]
enum Argument {
    Whole(u64),
    Share(f64),
    Flag(bool),
    Address(SocketAddr),
}

/// The parameters of a fault: those that were given, and the defaults of the others.
struct Arguments(Vec<(&'static str, Argument)>);

// The rows of the table ask for their own parameters only; a test makes every kind.
impl Arguments {
    fn get(&self, name: &str) -> Argument {
        self.0.iter().find(|(known, _)| *known == name).expect("a parameter of the kind").1
    }

    fn whole(&self, name: &str) -> u64 {
        let Argument::Whole(number) = self.get(name) else { unreachable!("{name} is a number") };
        number
    }

    fn share(&self) -> f64 {
        let Argument::Share(share) = self.get("share") else { unreachable!("a share is a share") };
        share
    }

    fn flag(&self, name: &str) -> bool {
        let Argument::Flag(flag) = self.get(name) else { unreachable!("{name} is a flag") };
        flag
    }

    fn address(&self, name: &str) -> SocketAddr {
        let Argument::Address(address) = self.get(name) else { unreachable!("{name} is one") };
        address
    }
}

/// Make a fault of a JSON object. An error names the mistake, and the known names.
pub fn fault(object: &Map<String, Value>) -> Result<Fault, String> {
    let name = object.get("kind").and_then(Value::as_str).ok_or("the fault has no kind")?;
    let kind = KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        format!("{name}: no such kind; there are {}", names(KINDS.iter().map(|kind| kind.name)))
    })?;
    let known = || kind.parameters.iter().map(|parameter| parameter.name);
    for given in object.keys().filter(|given| *given != "kind") {
        if !known().any(|known| known == given) {
            let there = names(known());
            return Err(format!("{name}.{given}: no such parameter; there are: {there}"));
        }
    }
    let argument = |parameter: &Parameter| {
        let value = argument(parameter, object.get(parameter.name))
            .map_err(|wanted| format!("{name}.{}: {wanted}", parameter.name))?;
        Ok((parameter.name, value))
    };
    let arguments = kind.parameters.iter().map(argument).collect::<Result<_, String>>()?;
    Ok((kind.make)(&Arguments(arguments)))
}

fn names(names: impl Iterator<Item = &'static str>) -> String {
    let names = names.collect::<Vec<_>>();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The value of a parameter, or what it should be.
fn argument(parameter: &Parameter, given: Option<&Value>) -> Result<Argument, String> {
    match parameter.kind {
        ParameterType::Whole { least, most, default } => {
            let number = given.map_or(Some(default), Value::as_u64);
            let valid = number.filter(|number| (least..=most).contains(number));
            valid
                .map(Argument::Whole)
                .ok_or_else(|| format!("it must be a whole number from {least} to {most}"))
        }
        ParameterType::Share { default } => {
            let share = given.map_or(Some(default), Value::as_f64);
            let valid = share.filter(|share| *share > 0.0 && *share <= 1.0);
            valid
                .map(Argument::Share)
                .ok_or_else(|| "it must be a number above 0, and 1 at most".to_owned())
        }
        ParameterType::Flag { default } => given
            .map_or(Some(default), Value::as_bool)
            .map(Argument::Flag)
            .ok_or_else(|| "it must be true or false".to_owned()),
        ParameterType::Address => {
            let text = given.and_then(Value::as_str).ok_or("it must be given, as \"host:port\"")?;
            let mut found = text.to_socket_addrs().map_err(|error| format!("{text}: {error}"))?;
            found.next().map(Argument::Address).ok_or_else(|| format!("{text}: no such host"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(json: &str) -> Result<Fault, String> {
        let value: Value = serde_json::from_str(json).expect("JSON");
        fault(value.as_object().expect("an object"))
    }

    #[test]
    fn every_kind_can_be_made_of_its_defaults() {
        for kind in KINDS {
            let mut object = Map::new();
            object.insert("kind".to_owned(), kind.name.into());
            for parameter in kind.parameters {
                if matches!(parameter.kind, ParameterType::Address) {
                    object.insert(parameter.name.to_owned(), "127.0.0.1:1".into());
                }
            }
            let made = fault(&object).expect(kind.name);
            let has_share = kind.parameters.iter().any(|parameter| parameter.name == "share");
            assert_eq!(made.share().is_some(), has_share, "{}", kind.name);
        }
    }

    #[test]
    fn parameters_are_taken_as_given() {
        assert_eq!(made(r#"{"kind":"delay","delay_ms":7}"#), Ok(Fault::Delay { delay_ms: 7 }));
        assert_eq!(
            made(r#"{"kind":"server-error","share":1}"#),
            Ok(Fault::ServerError { share: 1.0 })
        );
        assert_eq!(made(r#"{"kind":"reset","new_too":true}"#), Ok(Fault::Reset { new_too: true }));
    }

    #[test]
    fn a_wrong_fault_is_explained() {
        for (json, error) in [
            (r#"{}"#, "the fault has no kind"),
            (r#"{"kind":7}"#, "the fault has no kind"),
            (r#"{"kind":"dealy"}"#, "dealy: no such kind; there are blackhole, never-answers, "),
            (r#"{"kind":"delay","ms":1}"#, "delay.ms: no such parameter; there are: delay_ms"),
            (
                r#"{"kind":"never-answers","ms":1}"#,
                "never-answers.ms: no such parameter; there are: none",
            ),
            (
                r#"{"kind":"delay","delay_ms":0}"#,
                "delay.delay_ms: it must be a whole number from 1 to 600000",
            ),
            (
                r#"{"kind":"delay","delay_ms":1.5}"#,
                "delay.delay_ms: it must be a whole number from 1 to 600000",
            ),
            (
                r#"{"kind":"server-error","share":1.1}"#,
                "server-error.share: it must be a number above 0, and 1 at most",
            ),
            (r#"{"kind":"reset","new_too":1}"#, "reset.new_too: it must be true or false"),
            (
                r#"{"kind":"switch-upstream"}"#,
                "switch-upstream.to: it must be given, as \"host:port\"",
            ),
        ] {
            let found = made(json).expect_err(json);
            assert!(found.starts_with(error), "{found}");
        }
    }
}
