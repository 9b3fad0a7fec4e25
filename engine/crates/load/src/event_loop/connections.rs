//! The state of a thread's connections: open, being opened, or to be opened again.

use crate::io_traits::Network;

/// A lost connection is opened again at once; where that fails after this, twice … as long.
const RECONNECT_MIN_NS: u64 = 10_000_000;
pub(crate) const RECONNECT_MAX_NS: u64 = 500_000_000;

#[derive(Clone, Copy)]
pub(crate) enum ConnectionState {
    Open,
    Connecting,
    /// To be opened again at this instant, then after that long.
    Closed {
        retry_at_ns: u64,
        delay_ns: u64,
    },
}

/// The connections of one thread and the state that each is in; they outlive a run.
pub struct ThreadConnections<N> {
    pub(crate) network: N,
    pub(crate) states: Vec<ConnectionState>,
    pub(crate) blocked: Vec<bool>,
    /// How long to wait should a connection be lost that has had no reply yet; 0 for one that has.
    pub(crate) reconnect_delay_ns: Vec<u64>,
}

impl<N: Network> ThreadConnections<N> {
    /// Over connections that are all open.
    pub fn new(network: N) -> ThreadConnections<N> {
        let count = network.connections();
        ThreadConnections {
            network,
            states: vec![ConnectionState::Open; count],
            blocked: vec![false; count],
            reconnect_delay_ns: vec![0; count],
        }
    }

    pub fn len(&self) -> usize {
        self.states.len()
    }

    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    pub fn network_mut(&mut self) -> &mut N {
        &mut self.network
    }

    /// What they went over.
    pub fn into_network(self) -> N {
        self.network
    }

    pub(crate) fn close(&mut self, c: usize, now_ns: u64) {
        self.network.close(c);
        self.blocked[c] = false;
        self.states[c] =
            ConnectionState::Closed { retry_at_ns: now_ns, delay_ns: RECONNECT_MIN_NS };
    }

    /// Close a connection that the server has ended or spoilt: one that does so to each before it
    /// has answered anything is not asked again at once.
    pub(crate) fn close_failed(&mut self, c: usize, now_ns: u64) {
        let delay_ns = self.reconnect_delay_ns[c];
        self.reconnect_delay_ns[c] = (delay_ns * 2).clamp(RECONNECT_MIN_NS, RECONNECT_MAX_NS);
        self.close(c, now_ns + delay_ns);
    }
}
