//! Which server of a fleet has a key, as clients decide it.

use cachemark_load::{jenkins_one_at_a_time, ketama_point, ketama_ring, server_at};
use md5::{Digest, Md5};
use serde::Serialize;

/// How clients place keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// Jenkins' one-at-a-time hash, modulo the number of servers.
    Modulo,
    /// 160 points for each server on a ring, from MD5.
    Ketama,
    /// Jump consistent hash (Lamping, Veach 2014), of the first eight bytes of MD5.
    Jump,
}

impl Placement {
    pub fn name(self) -> &'static str {
        match self {
            Placement::Modulo => "modulo",
            Placement::Ketama => "ketama",
            Placement::Jump => "jump",
        }
    }

    /// The point of a key for a ring. `draw` 0 is the key itself; any other is another key in its place.
    pub fn point(self, key: &[u8], draw: u32) -> u64 {
        let drawn;
        let key = if draw == 0 {
            key
        } else {
            drawn = [&draw.to_le_bytes()[..], key].concat();
            &drawn
        };
        match self {
            Placement::Modulo => u64::from(jenkins_one_at_a_time(key)),
            Placement::Ketama => u64::from(ketama_point(&Md5::digest(key), 0)),
            Placement::Jump => {
                let digest = Md5::digest(key);
                u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|at| digest[at]))
            }
        }
    }
}

/// The servers of a fleet as clients see them.
#[derive(Clone, Debug)]
pub struct Ring {
    placement: Placement,
    /// Servers by their number in the fleet.
    alive: Vec<u16>,
    points: Vec<(u32, u16)>,
}

impl Ring {
    /// A ring of servers with these names.
    pub fn new(placement: Placement, names: &[String]) -> Ring {
        Ring::of(placement, names, (0..names.len() as u16).collect())
    }

    /// The ring of clients that took one server out of their list.
    pub fn without(placement: Placement, names: &[String], lost: usize) -> Ring {
        let others = (0..names.len() as u16).filter(|server| usize::from(*server) != lost);
        Ring::of(placement, names, others.collect())
    }

    fn of(placement: Placement, names: &[String], alive: Vec<u16>) -> Ring {
        let points = if placement == Placement::Ketama {
            let names: Vec<String> =
                alive.iter().map(|server| names[usize::from(*server)].clone()).collect();
            ketama_ring(&names)
        } else {
            Vec::new()
        };
        Ring { placement, alive, points }
    }

    /// The server of a key, from its point.
    #[inline]
    pub fn server_of(&self, point: u64) -> usize {
        let place = match self.placement {
            Placement::Modulo => (point % self.alive.len() as u64) as usize,
            Placement::Ketama => usize::from(server_at(&self.points, point as u32)),
            Placement::Jump => jump(point, self.alive.len()),
        };
        usize::from(self.alive[place])
    }
}

fn jump(mut key: u64, buckets: usize) -> usize {
    let (mut bucket, mut next) = (0, 0);
    while next < buckets as i64 {
        bucket = next;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        let step = (1u64 << 31) as f64 / ((key >> 33) + 1) as f64;
        next = ((bucket + 1) as f64 * step) as i64;
    }
    bucket as usize
}
