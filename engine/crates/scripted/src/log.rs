//! The result of each read, and when the server read and wrote it. All memory is allocated in
//! advance.

use serde::Serialize;
use serde::ser::SerializeStruct;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadOutcome {
    /// Not answered yet, or the connection ended before.
    Pending,
    Answered,
    /// Answered with a value that does not belong to the key.
    Wrong,
    Dropped,
    /// Not answered, because an earlier read on the same connection was dropped.
    Behind,
    /// The connection was closed without an answer.
    Closed,
}

/// One read. Times are CLOCK_MONOTONIC in ns; 0 if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRecord {
    /// After the read(2) that returned its last byte.
    pub received_ns: u64,
    /// When its last byte should be sent.
    pub due_ns: u64,
    /// Before the write(2) of its first byte.
    pub first_ns: u64,
    /// Before the write(2) of its last byte.
    pub sent_ns: u64,
    pub connection: u64,
    pub outcome: ReadOutcome,
}

const EMPTY: ReadRecord = ReadRecord {
    received_ns: 0,
    due_ns: 0,
    first_ns: 0,
    sent_ns: 0,
    connection: 0,
    // Not all zeros, so that the pages are in memory before the first request.
    outcome: ReadOutcome::Closed,
};

pub struct ReadLog {
    records: Vec<ReadRecord>,
    used: usize,
    /// Reads that arrived when the log was full.
    overflow: u64,
    /// Connections that were accepted.
    accepted: u64,
    /// Counts restarts. A read from before a restart is answered, but not logged.
    epoch: u64,
}

/// The place of a read in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    index: usize,
    epoch: u64,
}

impl ReadLog {
    pub fn with_capacity(requests: usize) -> ReadLog {
        ReadLog { records: vec![EMPTY; requests], used: 0, overflow: 0, accepted: 0, epoch: 0 }
    }

    pub fn restart(&mut self) {
        (self.used, self.overflow, self.accepted) = (0, 0, 0);
        self.epoch += 1;
    }

    pub fn accept(&mut self) {
        self.accepted += 1;
    }

    pub fn receive(&mut self, received_ns: u64, connection: u64) -> Option<LogEntry> {
        let Some(record) = self.records.get_mut(self.used) else {
            self.overflow += 1;
            return None;
        };
        *record = ReadRecord { received_ns, connection, outcome: ReadOutcome::Pending, ..EMPTY };
        self.used += 1;
        Some(LogEntry { index: self.used - 1, epoch: self.epoch })
    }

    /// The record of an entry; `None` if the log was restarted since.
    pub fn get(&mut self, entry: Option<LogEntry>) -> Option<&mut ReadRecord> {
        let entry = entry.filter(|entry| entry.epoch == self.epoch)?;
        self.records.get_mut(entry.index)
    }

    pub fn records(&self) -> &[ReadRecord] {
        &self.records[..self.used]
    }
}

/// As columns: one array per field.
impl Serialize for ReadLog {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        fn column<T>(records: &[ReadRecord], of: impl Fn(&ReadRecord) -> T) -> Vec<T> {
            records.iter().map(of).collect()
        }
        let records = self.records();
        let mut out = serializer.serialize_struct("log", 8)?;
        out.serialize_field("beyond", &self.overflow)?;
        out.serialize_field("accepted", &self.accepted)?;
        out.serialize_field("received_ns", &column(records, |record| record.received_ns))?;
        out.serialize_field("due_ns", &column(records, |record| record.due_ns))?;
        out.serialize_field("first_ns", &column(records, |record| record.first_ns))?;
        out.serialize_field("sent_ns", &column(records, |record| record.sent_ns))?;
        out.serialize_field("connection", &column(records, |record| record.connection))?;
        out.serialize_field("fate", &column(records, |record| record.outcome))?;
        out.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_still_counts_and_a_restart_clears_it() {
        let mut log = ReadLog::with_capacity(1);
        let first = log.receive(5, 0);
        assert_eq!(log.receive(6, 0), None);
        assert_eq!((log.records().len(), log.overflow), (1, 1));
        log.restart();
        assert_eq!(log.get(first), None, "it is older than the restart");
        assert_eq!((log.records().len(), log.overflow), (0, 0));
    }
}
