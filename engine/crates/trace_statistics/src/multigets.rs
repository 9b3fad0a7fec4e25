//! How many keys a request reads.

use cachemark_trace::file::Record;
use serde::Serialize;

use crate::kind::Kind;
use crate::sizes::{SizeDistribution, Sizes};

/// Requests that read, and how many keys each had.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MultigetStatistics {
    /// Keys of a request, of all requests that read.
    pub keys: SizeDistribution,
    /// Requests of more than one key.
    pub multigets: u64,
    /// Keys that were read with others.
    pub joined_keys: u64,
}

#[derive(Default)]
pub(crate) struct Multigets {
    keys: Sizes,
    multigets: u64,
    joined_keys: u64,
    /// Keys of the request that is not over.
    open: u32,
}

impl Multigets {
    pub fn add(&mut self, record: &Record<'_>, kind: Kind) {
        if kind != Kind::Read {
            return;
        }
        if !record.joined {
            self.end();
        }
        self.open += 1;
        // Repetitions are requests of their own.
        if record.count > 1 {
            self.keys.add(1, u64::from(record.count - 1));
        }
    }

    fn end(&mut self) {
        let keys = std::mem::take(&mut self.open);
        if keys > 0 {
            self.keys.add(keys, 1);
        }
        if keys > 1 {
            self.multigets += 1;
            self.joined_keys += u64::from(keys);
        }
    }

    pub fn statistics(mut self) -> MultigetStatistics {
        self.end();
        MultigetStatistics {
            keys: self.keys.distribution(),
            multigets: self.multigets,
            joined_keys: self.joined_keys,
        }
    }
}
