//! The state of a thread's connections: open, being opened, or to be opened again.

use crate::io_traits::Network;

/// A lost connection is opened again at once; where that fails after this, twice … as long.
const RECONNECT_FIRST_NS: u64 = 10_000_000;
pub(crate) const RECONNECT_LONGEST_NS: u64 = 500_000_000;

#[derive(Clone, Copy)]
pub(crate) enum Link {
    Open,
    Connecting,
    /// To be opened again at this instant, then after that long.
    Closed {
        again_ns: u64,
        wait_ns: u64,
    },
}

/// The connections of one thread and the state that each is in; they outlive a run.
pub struct Links<N> {
    pub(crate) network: N,
    pub(crate) links: Vec<Link>,
    pub(crate) blocked: Vec<bool>,
    /// How long to wait should a connection be lost that has had no reply yet; 0 for one that has.
    pub(crate) fruitless_ns: Vec<u64>,
}

impl<N: Network> Links<N> {
    /// Over connections that are all open.
    pub fn new(network: N) -> Links<N> {
        let count = network.connections();
        Links {
            network,
            links: vec![Link::Open; count],
            blocked: vec![false; count],
            fruitless_ns: vec![0; count],
        }
    }

    pub fn len(&self) -> usize {
        self.links.len()
    }

    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
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
        self.links[c] = Link::Closed { again_ns: now_ns, wait_ns: RECONNECT_FIRST_NS };
    }

    /// Close a connection that the server has ended or spoilt: one that does so to each before it
    /// has answered anything is not asked again at once.
    pub(crate) fn close_spoilt(&mut self, c: usize, now_ns: u64) {
        let wait_ns = self.fruitless_ns[c];
        self.fruitless_ns[c] = (wait_ns * 2).clamp(RECONNECT_FIRST_NS, RECONNECT_LONGEST_NS);
        self.close(c, now_ns + wait_ns);
    }
}
