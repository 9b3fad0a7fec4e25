//! The proxy's account, for another thread to read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::distance::held::{Held, HeldSummary};

/// The proxy's work since it began.
#[derive(Default)]
pub struct Account {
    pub connections: u64,
    /// Clients that it could not connect to their server.
    pub refused: u64,
    pub(super) there: Held,
    pub(super) back: Held,
}

impl Account {
    /// Of bytes from clients to servers, then of those from servers to clients.
    pub fn held(&self) -> [HeldSummary; 2] {
        [self.there.summary(), self.back.summary()]
    }
}

/// The account, for another thread to read.
#[derive(Clone, Default)]
pub struct SharedAccount(Arc<Mutex<Account>>);

impl SharedAccount {
    /// No bytes are moved while it is locked.
    pub fn lock(&self) -> MutexGuard<'_, Account> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
