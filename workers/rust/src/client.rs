//! The interface of a client file, and its refusals of a trial; README.md says what each part must do.

use crate::prepare::Prepare;
use crate::tape::{Kind, Operation, Tape, Verb, kind_name};
use crate::verify::{ReplyStatus, Verified};

/// A client's identity and capabilities.
pub struct Client {
    pub library: &'static str,
    pub version: &'static str,
    /// The library's own choice first.
    pub wires: &'static [&'static str],
    pub features: &'static [&'static str],
    pub verbs: &'static [Verb],
    /// The verbs that it can also do without a reply.
    pub quiet: &'static [Verb],
    /// Options with their possible values.
    pub options: &'static [(&'static str, &'static [&'static str])],
}

impl Client {
    /// Whether it is a cache in this process, which has no server.
    pub fn in_process(&self) -> bool {
        self.wires == ["none"]
    }

    /// The kinds of operation that it supports.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        let with_reply = self.verbs.iter().map(|verb| 2 * usize::from(verb.0));
        with_reply.chain(self.quiet.iter().map(|verb| 2 * usize::from(verb.0) + 1))
    }
}

/// The client of one lane, connected.
#[allow(async_fn_in_trait, reason = "each lane has an executor of its own")]
pub trait Session: Sized + Send + 'static {
    const CLIENT: Client;
    /// The answer of a call; the worker judges it after reading the clock.
    type Answer;
    type Error;
    /// The state that the lanes share; most share nothing.
    type Shared: Clone + Send;

    fn share(setup: &Prepare) -> Self::Shared;
    async fn open(setup: &Prepare, shared: Self::Shared) -> Result<Self, String>;

    /// The client's own reason against a trial.
    fn refuse(_setup: &Prepare, _tape: &Tape) -> Option<&'static str> {
        None
    }

    /// The operation alone: the worker times this call.
    async fn call(&mut self, op: &Operation) -> Result<Self::Answer, Self::Error>;
    fn verify(tape: &Tape, op: &Operation, answer: &Self::Answer) -> Verified;
    /// The result of an error: some are answers.
    fn failure(op: &Operation, error: &Self::Error) -> ReplyStatus;

    /// Send commands with a reply after operations without one; their number.
    async fn barrier(&mut self) -> Result<u64, Self::Error> {
        Ok(0)
    }

    /// Connections that were opened again.
    fn reconnects(&self) -> u64 {
        0
    }
}

/// The reason why the client cannot play a trial, before the prefill.
pub fn refusal<S: Session>(setup: &Prepare, tape: &Tape) -> Option<String> {
    let client = S::CLIENT;
    let own: Vec<_> = client.kinds().collect();
    let missing: Vec<_> =
        tape.kinds.iter().filter(|kind| !own.contains(kind)).map(|kind| kind_name(*kind)).collect();
    let unix = setup.servers.iter().any(|server| server.starts_with("unix:"));
    let can = |feature: &str| client.features.contains(&feature);
    let option = setup.options.iter().find(|(name, value)| {
        let login = *name == "auth" && can("login_text");
        let renews = *name == "reconnect_after" && !client.in_process();
        !login
            && !renews
            && !client
                .options
                .iter()
                .any(|(known, values)| known == name && values.contains(&value.as_str()))
    });
    let numbers = [setup.threads, setup.connections, setup.depth, setup.timeout_ms as usize];
    let unknown = option.map(|(name, value)| format!("{name}={value}")).unwrap_or_default();
    let renewal = setup.reconnect_after().and_then(Result::err);
    let checks = [
        (
            numbers.contains(&0) || setup.segment.0 >= setup.segment.1,
            "numbers without a meaning".to_owned(),
        ),
        (
            client.in_process() && !setup.servers.is_empty(),
            "it is in this process and takes no servers".into(),
        ),
        (!client.in_process() && setup.servers.is_empty(), "it needs a server".into()),
        (!client.wires.contains(&setup.wire.as_str()), format!("no wire {}", setup.wire)),
        (unix && !can("unix"), "no Unix sockets".into()),
        (setup.servers.len() > 1 && !can("cluster"), "one server only".into()),
        (tape.thinks, "no time to think between operations".into()),
        (setup.depth > 1, "one operation at a time on a connection (depth 1)".into()),
        (
            !client.in_process() && setup.connections != setup.threads,
            "one connection for each thread".into(),
        ),
        (
            renewal.is_some() && !client.in_process(),
            format!(
                "option reconnect_after is a number from 1 on, not {:?}",
                renewal.unwrap_or_default()
            ),
        ),
        (!missing.is_empty(), format!("no {}", missing.join(", "))),
        (!unknown.is_empty(), format!("no option {unknown}; it has: {}", listed(client.options))),
    ];
    let refused = checks.into_iter().find(|(refused, _)| *refused).map(|(_, reason)| reason);
    refused.or_else(|| S::refuse(setup, tape).map(str::to_owned))
}

/// Options with their possible values, as a text.
fn listed(options: &[(&str, &[&str])]) -> String {
    let texts: Vec<_> =
        options.iter().map(|(name, values)| format!("{name}={}", values.join("|"))).collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}
