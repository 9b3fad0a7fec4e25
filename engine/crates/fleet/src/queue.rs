//! How long requests wait for a thread of a server.

/// A thread that serves one request after the other. memcached binds each connection to one thread, so a server of
/// several threads is several queues, not one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thread {
    /// Requests a second, which come at random (Poisson).
    pub rate: f64,
    /// The mean time that the thread works for a request.
    pub service_s: f64,
    /// The squared coefficient of variation of that time: 0 if it is constant, 1 if exponential.
    pub service_cv2: f64,
}

impl Thread {
    /// The part of the time for which it works.
    pub fn utilisation(&self) -> f64 {
        self.rate * self.service_s
    }

    /// The mean wait of a request in seconds (Pollaczek, Khinchine). `None` if the queue grows without end.
    pub fn mean_wait_s(&self) -> Option<f64> {
        let busy = self.utilisation();
        (busy < 1.0).then(|| busy / (1.0 - busy) * self.service_s * (1.0 + self.service_cv2) / 2.0)
    }

    /// The wait that this part of the requests exceeds: an exponential tail with the mean above. It is exact for
    /// exponential service times, and too long for constant ones.
    pub fn wait_exceeded_s(&self, part: f64) -> Option<f64> {
        let busy = self.utilisation();
        let mean_of_waiting = self.mean_wait_s()? / busy;
        Some(if busy <= part { 0.0 } else { mean_of_waiting * (busy / part).ln() })
    }
}
