//! How long requests wait for a thread of a server.

/// Below this use of a thread, service times that vary more than exponential ones leave the tail open.
const LEAST_BUSY_IF_VARIED: f64 = 0.3;
const BISECTIONS: u32 = 100;

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

    /// The wait that this part of the requests exceeds. `None` if it is not known: the queue grows without end, or times
    /// vary so much, and queues are so rare, that mean and variance do not determine the tail.
    ///
    /// The tail is exponential (Cramér, Lundberg), with its exact rate and height for service times by a gamma law, which
    /// constant and exponential times belong to. Waits within the first service time are exact for constant ones.
    pub fn wait_exceeded_s(&self, part: f64) -> Option<f64> {
        let busy = self.utilisation();
        if busy >= 1.0 || (self.service_cv2 > 1.0 && busy < LEAST_BUSY_IF_VARIED) {
            return None;
        }
        if busy <= part {
            return Some(0.0);
        }
        // 1 − (1 − ρ)·e^(λx) wait longer than x, up to a service time.
        let within_first = ((1.0 - part) / (1.0 - busy)).ln() / self.rate;
        if self.service_cv2 == 0.0 && within_first <= self.service_s {
            return Some(within_first);
        }
        let decay = self.decay();
        let slope = self.growth(decay) / (1.0 - self.service_cv2 * decay);
        let height = (1.0 - busy) / (busy * slope - 1.0);
        Some(self.service_s * ((height / part).ln() / decay).max(0.0))
    }

    /// E[e^(uS)] for a service time S by a gamma law with mean 1.
    fn growth(&self, u: f64) -> f64 {
        let exponent = match self.service_cv2 {
            0.0 => u,
            cv2 => -(-cv2 * u).ln_1p() / cv2,
        };
        exponent.exp()
    }

    /// The rate at which the tail falls, in service times: where ρ·(growth − 1) = u, besides 0.
    fn decay(&self) -> f64 {
        let is_below = |u: f64| self.utilisation() * (self.growth(u) - 1.0) < u;
        let (mut low, mut high) = (0.0, 1.0 / self.service_cv2.max(1e-9));
        if self.service_cv2 == 0.0 {
            high = 1.0;
            while is_below(high) {
                high *= 2.0;
            }
        }
        for _ in 0..BISECTIONS {
            let middle = (low + high) / 2.0;
            *(if is_below(middle) { &mut low } else { &mut high }) = middle;
        }
        low
    }
}
