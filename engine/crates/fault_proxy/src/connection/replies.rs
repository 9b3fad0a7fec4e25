//! The way of the replies through a connection, where most faults are.

use std::ops::ControlFlow;

use crate::connection::{Connection, READS_PER_TURN, Shared, WAITING_BYTES_MAX};
use crate::edits::{Edit, Then, edit_reply};
use crate::fault::Fault;
use crate::frames::replies::ReplyFrame;
use crate::log::{ClosedBy, Event};

impl Connection {
    /// Pass replies on. Returns whether more can be read.
    pub(super) fn pump_replies(&mut self, shared: &mut Shared) -> Result<bool, ClosedBy> {
        for _ in 0..READS_PER_TURN {
            self.write_replies(shared)?;
            let edits = self.edits_replies(shared);
            if !edits {
                self.release_replies(shared);
            }
            let waits = self.to_client.held() >= WAITING_BYTES_MAX;
            let Some(upstream) = self.upstream.as_mut().filter(|_| !waits && !self.is_connecting)
            else {
                return Ok(false);
            };
            let mut scratch = std::mem::take(&mut shared.scratch);
            let read = upstream.read(&mut scratch);
            if let Ok(Some(bytes)) = read {
                self.active_ns = shared.now_ns;
                self.take_replies(bytes, edits, shared);
            }
            let more = matches!(read, Ok(Some(_)));
            let failed = read.is_err();
            shared.scratch = scratch;
            if failed {
                return Err(ClosedBy::Upstream);
            }
            if !more {
                self.write_replies(shared)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether replies must be collected: the fault changes them, or some of them are ours to replace.
    fn edits_replies(&self, shared: &Shared) -> bool {
        shared.fault.as_ref().is_some_and(Fault::edits_replies)
            || self.versions.iter().any(Option::is_some)
    }

    fn release_replies(&mut self, shared: &Shared) {
        let (memory, versions, mut out) = (&mut self.memory, &mut self.versions, Vec::new());
        self.replies.release(&mut out, |what| {
            memory.pass(what);
            if what.is_version {
                versions.pop_front();
            }
        });
        self.to_client.add(&out, shared.now_ns, shared.now_ns);
    }

    /// Write what the fault lets through.
    fn write_replies(&mut self, shared: &Shared) -> Result<(), ClosedBy> {
        let now_ns = shared.now_ns;
        let most = match shared.fault {
            Some(Fault::Blackhole { .. }) => self.fault.left_bytes as usize,
            Some(Fault::Drip { .. }) => usize::from(self.fault.next_byte_ns <= now_ns),
            _ => usize::MAX,
        };
        let written = self
            .to_client
            .write_to(&mut self.client, most, now_ns)
            .map_err(|_| ClosedBy::Client)?;
        match shared.fault {
            Some(Fault::Blackhole { .. }) => self.fault.left_bytes -= written as u64,
            Some(Fault::Drip { interval_us }) if written > 0 => {
                self.fault.next_byte_ns = now_ns + interval_us * 1000;
            }
            _ => {}
        }
        Ok(())
    }

    /// Take what the server sent.
    fn take_replies(&mut self, bytes: &[u8], edits: bool, shared: &mut Shared) {
        let now_ns = shared.now_ns;
        if edits {
            return self.edit_replies(bytes, shared);
        }
        let (memory, versions) = (&mut self.memory, &mut self.versions);
        self.replies.follow(bytes, |what| {
            memory.pass(what);
            if what.is_version {
                versions.pop_front();
            }
        });
        self.is_silent |= shared.fault == Some(Fault::NeverAnswers);
        if self.is_silent {
            return self.log_injection(self.to_client.added(), shared);
        }
        let due_ns = match shared.fault {
            Some(Fault::Delay { delay_ms }) => now_ns + delay_ms * 1_000_000,
            _ => now_ns,
        };
        shared.has_delayed |= due_ns > now_ns;
        if matches!(shared.fault, Some(Fault::Delay { .. } | Fault::Drip { .. })) {
            self.log_injection(self.to_client.added(), shared);
        }
        self.to_client.add(bytes, due_ns, now_ns);
    }

    /// Change replies, or replace those to our own requests.
    fn edit_replies(&mut self, bytes: &[u8], shared: &mut Shared) {
        let base = self.to_client.added();
        let (number, now_ns) = (self.number, shared.now_ns);
        let (memory, versions, mut out) = (&mut self.memory, &mut self.versions, Vec::new());
        let mut then = Then::GoOn;
        let _ = self.replies.take(bytes, &mut out, |what, frame, out| {
            let begin = out.len();
            let edit = edit((what, frame), (memory, versions), shared, out);
            if let Some(at) = edit.changed_at {
                let reply_offset = base + (begin + at) as u64;
                shared.log.add(Event::Injected { connection: number, reply_offset });
            }
            then = edit.then;
            if then == Then::GoOn { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        if !self.is_silent {
            self.to_client.add(&out, now_ns, now_ns);
        }
        self.end(then);
    }
}

type Versions = std::collections::VecDeque<Option<Vec<u8>>>;

fn edit(
    (what, frame): (ReplyFrame, Option<&[u8]>),
    (memory, versions): (&mut crate::edits::ReplyMemory, &mut Versions),
    shared: &mut Shared,
    out: &mut Vec<u8>,
) -> Edit {
    let unchanged = Edit { changed_at: None, then: Then::GoOn };
    if what.is_version
        && let Some(Some(error)) = versions.pop_front()
    {
        out.extend(error);
        return Edit { changed_at: Some(0), ..unchanged };
    }
    let frame = frame.unwrap_or_default();
    match &shared.fault {
        Some(fault) if fault.edits_replies() && !frame.is_empty() => {
            edit_reply(fault, (what, frame), &mut shared.chooser, memory, out)
        }
        _ => {
            memory.pass(what);
            out.extend_from_slice(frame);
            unchanged
        }
    }
}
