//! Which server of a fleet has a key, as clients decide it.

use cachemark_load::{jenkins_one_at_a_time, ketama_point, ketama_ring, server_at};
use md5::{Digest, Md5};
use serde::Serialize;
use sha1::Sha1;

/// How clients place keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Jenkins' one-at-a-time hash, modulo the number of servers: libmemcached's default.
    Modulo,
    /// 160 points for each server on a ring, from MD5 of HOST:PORT-N.
    Ketama,
    /// The same as libmemcached has it: the names of servers on port 11211 have no port.
    LibmemcachedKetama,
    /// CRC-32, modulo the number of servers.
    Gomemcache,
    /// 15 of the upper bits of CRC-32, modulo the number of servers: also Perl's Cache::Memcached.
    PythonMemcached,
    /// 160 points for each server on a ring, from SHA-1; CRC-32 of keys, and the point before.
    Dalli,
    /// Jump consistent hash (Lamping, Veach 2014), of the first eight bytes of MD5.
    Jump,
}

/// The port that libmemcached does not name.
const DEFAULT_PORT: &str = ":11211";
const POINTS: usize = 160;

impl Placement {
    pub const ALL: [Placement; 7] = [
        Placement::Ketama,
        Placement::LibmemcachedKetama,
        Placement::Modulo,
        Placement::Gomemcache,
        Placement::PythonMemcached,
        Placement::Dalli,
        Placement::Jump,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Placement::Modulo => "modulo",
            Placement::Ketama => "ketama",
            Placement::LibmemcachedKetama => "libmemcached-ketama",
            Placement::Gomemcache => "gomemcache",
            Placement::PythonMemcached => "python-memcached",
            Placement::Dalli => "dalli",
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
            Placement::Ketama | Placement::LibmemcachedKetama => {
                u64::from(ketama_point(&Md5::digest(key), 0))
            }
            Placement::Gomemcache | Placement::Dalli => u64::from(crc32fast::hash(key)),
            Placement::PythonMemcached => u64::from((crc32fast::hash(key) >> 16) & 0x7fff),
            Placement::Jump => {
                let digest = Md5::digest(key);
                u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|at| digest[at]))
            }
        }
    }

    /// The points of a ring of these servers, in their order; none if keys are placed without a ring.
    fn ring(self, names: &[String]) -> Vec<(u32, u16)> {
        let short = |name: &String| name.strip_suffix(DEFAULT_PORT).unwrap_or(name).to_owned();
        match self {
            Placement::Ketama => ketama_ring(names),
            Placement::LibmemcachedKetama => {
                ketama_ring(&names.iter().map(short).collect::<Vec<_>>())
            }
            Placement::Dalli => dalli_ring(names),
            _ => Vec::new(),
        }
    }
}

fn dalli_ring(names: &[String]) -> Vec<(u32, u16)> {
    let mut points = Vec::with_capacity(names.len() * POINTS);
    for (server, name) in names.iter().enumerate() {
        points.extend((0..POINTS).map(|number| {
            let digest = Sha1::digest(format!("{name}:{number}"));
            (u32::from_be_bytes([0, 1, 2, 3].map(|at| digest[at])), server as u16)
        }));
    }
    points.sort_unstable();
    points
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
        let names: Vec<String> =
            alive.iter().map(|server| names[usize::from(*server)].clone()).collect();
        Ring { placement, points: placement.ring(&names), alive }
    }

    /// The server of a key, from its point.
    #[inline]
    pub fn server_of(&self, point: u64) -> usize {
        let place = match self.placement {
            Placement::Modulo | Placement::Gomemcache | Placement::PythonMemcached => {
                (point % self.alive.len() as u64) as usize
            }
            Placement::Ketama | Placement::LibmemcachedKetama => {
                usize::from(server_at(&self.points, point as u32))
            }
            Placement::Dalli => usize::from(self.server_before(point as u32)),
            Placement::Jump => jump(point, self.alive.len()),
        };
        usize::from(self.alive[place])
    }

    /// The server of the last point at or before this one. Before the first point, it is the last of all.
    fn server_before(&self, point: u32) -> u16 {
        let after = self.points.partition_point(|(other, _)| *other <= point);
        self.points[after.checked_sub(1).unwrap_or(self.points.len() - 1)].1
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
