//! The faults, with their parameters.

use std::net::SocketAddr;

/// A fault of the proxy. `kinds.rs` explains each of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    Blackhole { after_bytes: u64 },
    NeverAnswers,
    Reset { new_too: bool },
    ResetInValue { share: f64, after_bytes: u64 },
    CloseInValue { share: f64, after_bytes: u64 },
    TruncateValue { share: f64, missing_bytes: u64 },
    Drip { interval_us: u64 },
    Delay { delay_ms: u64 },
    ServerError { share: f64 },
    TooManyConnections { reset_existing: bool },
    GarbageLine { share: f64 },
    UnaskedReply { share: f64 },
    OtherKey { share: f64 },
    IdleClose { idle_ms: u64 },
    Refuse { reset_existing: bool },
    FullBacklog { reset_existing: bool },
    SwitchUpstream { to: SocketAddr },
}

impl Fault {
    /// The part of the requests or replies that it changes; `None` if it does not look at single ones.
    pub fn share(&self) -> Option<f64> {
        match *self {
            Fault::ResetInValue { share, .. }
            | Fault::CloseInValue { share, .. }
            | Fault::TruncateValue { share, .. }
            | Fault::ServerError { share }
            | Fault::GarbageLine { share }
            | Fault::UnaskedReply { share }
            | Fault::OtherKey { share } => Some(share),
            _ => None,
        }
    }

    /// Whether it changes whole replies, so that these have to be collected first.
    pub fn edits_replies(&self) -> bool {
        self.share().is_some() && !self.edits_requests()
    }

    /// Whether it changes whole requests.
    pub fn edits_requests(&self) -> bool {
        matches!(self, Fault::ServerError { .. })
    }

    /// Whether the connections that exist are reset at its start.
    pub fn resets_existing(&self) -> bool {
        match *self {
            Fault::Reset { .. } => true,
            Fault::TooManyConnections { reset_existing }
            | Fault::Refuse { reset_existing }
            | Fault::FullBacklog { reset_existing } => reset_existing,
            _ => false,
        }
    }
}
