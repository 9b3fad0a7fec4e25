//! Slices of the worker: between `begin_slices` and `end_slices` the client's threads wait for requests.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::SystemTime;

use cachemark_load::{RunControl, SliceDriver, SliceLimits, SliceResult};

use super::messages::{Answer, Ready, Request, Slice};
use super::pipes::{Incoming, failure, send, until_unix_ns};

/// The reason why the slices ended.
#[derive(Debug)]
pub enum End {
    /// `end_slices`: the caller wants the results.
    Done,
    /// Another request: the results are discarded, and it is still to be answered.
    Request(Request),
    /// The caller left.
    Left,
}

/// Takes requests for slices, and answers them.
pub struct Requests<'a> {
    pub incoming: &'a Receiver<Incoming>,
    pub end: Option<End>,
}

impl SliceDriver for Requests<'_> {
    fn next(&mut self, played: Option<SliceResult>) -> Option<SliceLimits> {
        send(&match played {
            None => Answer::Ready(Ready::default()),
            Some(result) => Answer::SliceDone {
                ops: result.ops,
                errors: result.errors,
                lead_in_ops: result.lead_in_ops,
                elapsed_ns: result.mean_elapsed_ns(),
                half_ops: result.half_ops,
                half_ns: result.mean_half_ns(),
            },
        });
        while self.end.is_none() {
            match self.incoming.recv() {
                Ok(Ok(Request::Slice(slice))) => return Some(limits(&slice)),
                Ok(Ok(Request::Stop {})) => {}
                Ok(Ok(Request::EndSlices {})) => self.end = Some(End::Done),
                Ok(Ok(request)) => self.end = Some(End::Request(request)),
                Ok(Err(text)) => send(&failure("protocol", text, true)),
                Err(_) => self.end = Some(End::Left),
            }
        }
        None
    }

    fn poll(&mut self, control: &RunControl) {
        match self.incoming.try_recv() {
            Ok(Ok(Request::Stop {})) => control.stop(),
            Ok(Ok(Request::Bye {})) | Err(TryRecvError::Disconnected) => {
                self.end = Some(End::Left);
                control.stop();
            }
            Ok(Ok(_)) => send(&failure("protocol", "a slice is in progress".to_owned(), true)),
            Ok(Err(text)) => send(&failure("protocol", text, true)),
            Err(TryRecvError::Empty) => {}
        }
    }
}

fn limits(slice: &Slice) -> SliceLimits {
    SliceLimits {
        start_in_ns: until_unix_ns(slice.start_unix_ns, SystemTime::now()),
        length_ns: slice.length_us * 1000,
        lead_in_ns: slice.lead_in_us * 1000,
    }
}
