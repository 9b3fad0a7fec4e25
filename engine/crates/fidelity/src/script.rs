//! The simulated server's treatment of each request.

/// A request as the server sees it. Times are in ns from the start of the window.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The number of requests before it, on all connections.
    pub number: u64,
    pub at_ns: u64,
}

/// The reply to a request, and when it is sent. A connection replies in order, so a reply may be sent
/// later.
#[derive(Clone, Copy, Debug)]
pub enum ScriptedReply {
    At(u64),
    Never,
    /// The first half of the reply at one time, the rest at another.
    InHalves(u64, u64),
    /// A value that does not belong to the key.
    WrongValue(u64),
    /// The value of another key.
    WrongKey(u64),
}

pub type Script = Box<dyn FnMut(&Request) -> ScriptedReply>;

/// Reply after a fixed delay.
pub fn after(delay_ns: u64) -> Script {
    Box::new(move |request| ScriptedReply::At(request.at_ns + delay_ns))
}

/// Reply after a delay that depends on the number of the request.
pub fn delays(mut delay_ns: impl FnMut(u64) -> u64 + 'static) -> Script {
    Box::new(move |request| ScriptedReply::At(request.at_ns + delay_ns(request.number)))
}

/// Stall for the first `stall_ns` of each period, then answer everything at once.
pub fn stalls(stall_ns: u64, period_ns: u64, delay_ns: u64) -> Script {
    Box::new(move |request| {
        let phase = request.at_ns % period_ns;
        let begun = if phase < stall_ns { request.at_ns - phase + stall_ns } else { request.at_ns };
        ScriptedReply::At(begun.max(request.at_ns) + delay_ns)
    })
}

/// Stall once.
pub fn stalls_once(from_ns: u64, to_ns: u64, delay_ns: u64) -> Script {
    Box::new(move |request| {
        let inside = (from_ns..to_ns).contains(&request.at_ns);
        ScriptedReply::At(if inside { to_ns } else { request.at_ns } + delay_ns)
    })
}

/// One server for all connections: it serves requests one by one, each for its service time.
pub fn queue(mut service_ns: impl FnMut(u64) -> u64 + 'static) -> Script {
    let mut free_ns = 0;
    Box::new(move |request| {
        free_ns = request.at_ns.max(free_ns) + service_ns(request.number);
        ScriptedReply::At(free_ns)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(mut script: Script, at_ns: [u64; 3]) -> [u64; 3] {
        let mut number = 0;
        at_ns.map(|at_ns| {
            number += 1;
            match script(&Request { number, at_ns }) {
                ScriptedReply::At(ns) => ns,
                other => panic!("{other:?}"),
            }
        })
    }

    #[test]
    fn a_queue_serves_one_after_the_other() {
        assert_eq!(answers(queue(|_| 10), [0, 5, 100]), [10, 20, 110]);
    }

    #[test]
    fn a_stall_ends_for_all_at_once() {
        assert_eq!(answers(stalls(10, 100, 1), [0, 9, 10]), [11, 11, 11]);
        assert_eq!(answers(stalls_once(50, 60, 1), [49, 50, 60]), [50, 61, 61]);
    }
}
