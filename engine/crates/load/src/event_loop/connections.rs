//! The state of a thread's connections: open, connecting, or closed.

use crate::io_traits::Network;

/// The first attempt to reconnect is immediate. If it fails, the next ones follow after this time, then
/// twice as long, and so on.
pub(crate) const RECONNECT_MIN_NS: u64 = 10_000_000;
pub(crate) const RECONNECT_MAX_NS: u64 = 500_000_000;

#[derive(Clone, Copy)]
pub(crate) enum ConnectionState {
    Open,
    /// The attempt is given up at `until_ns`: without this limit, the kernel tries for two minutes.
    Connecting {
        until_ns: u64,
    },
    /// Reconnect at `retry_at_ns`. If that fails, wait `delay_ns` before the next attempt.
    Closed {
        retry_at_ns: u64,
        delay_ns: u64,
    },
}

/// The connections of one thread, with their states. They live longer than a run.
pub struct ThreadConnections<N> {
    pub(crate) network: N,
    pub(crate) states: Vec<ConnectionState>,
    pub(crate) blocked: Vec<bool>,
    /// The delay before reconnecting if the connection is lost before its first reply; 0 after a reply.
    pub(crate) reconnect_delay_ns: Vec<u64>,
}

impl<N: Network> ThreadConnections<N> {
    /// All connections of `network` must be open.
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

    /// The network below.
    pub fn into_network(self) -> N {
        self.network
    }

    pub(crate) fn close(&mut self, c: usize, now_ns: u64) {
        self.network.close(c);
        self.blocked[c] = false;
        self.states[c] =
            ConnectionState::Closed { retry_at_ns: now_ns, delay_ns: RECONNECT_MIN_NS };
    }

    /// Close a connection that failed. If its predecessors failed as well before any reply, the
    /// reconnect is delayed.
    pub(crate) fn close_failed(&mut self, c: usize, now_ns: u64) {
        let delay_ns = self.reconnect_delay_ns[c];
        self.reconnect_delay_ns[c] = (delay_ns * 2).clamp(RECONNECT_MIN_NS, RECONNECT_MAX_NS);
        self.close(c, now_ns + delay_ns);
    }
}
