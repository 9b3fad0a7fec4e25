//! The hash functions that clients use to find the server of a key.

use md5::{Digest, Md5};

/// Bob Jenkins' one-at-a-time hash.
pub fn jenkins_one_at_a_time(key: &[u8]) -> u32 {
    let mut hash: u32 = 0;
    for byte in key {
        hash = hash.wrapping_add(u32::from(*byte));
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

/// The points of a ketama ring: 40 digests per server, four points per digest.
pub fn ketama_ring(names: &[String]) -> Vec<(u32, u16)> {
    let mut points = Vec::with_capacity(names.len() * 160);
    for (server, name) in names.iter().enumerate() {
        for number in 0..40 {
            let digest = Md5::digest(format!("{name}-{number}"));
            points.extend((0..4).map(|part| (ketama_point(&digest, part), server as u16)));
        }
    }
    points.sort_unstable();
    points
}

pub fn ketama_point(digest: &[u8], part: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&digest[4 * part..4 * part + 4]);
    u32::from_le_bytes(bytes)
}

/// The server of the first point at or after `point`. After the last point, the ring starts again.
pub fn server_at(ring: &[(u32, u16)], point: u32) -> u16 {
    let at = ring.partition_point(|(other, _)| *other < point);
    ring[at % ring.len()].1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_jenkins() {
        // The examples on the author's page.
        assert_eq!(jenkins_one_at_a_time(b"a"), 0xca2e_9442);
        assert_eq!(
            jenkins_one_at_a_time(b"The quick brown fox jumps over the lazy dog"),
            0x519e_91f5
        );
    }

    #[test]
    fn an_even_ring_keeps_most_keys_without_a_server() {
        let names: Vec<String> = (0..4).map(|n| format!("10.0.0.{n}:11211")).collect();
        let (whole, less) = (ketama_ring(&names), ketama_ring(&names[..3]));
        assert_eq!(whole.len(), 640);
        let mut counts = [0; 4];
        let mut moved = 0;
        for number in 0..10_000 {
            let point = ketama_point(&Md5::digest(format!("key-{number}")), 0);
            let server = server_at(&whole, point);
            counts[usize::from(server)] += 1;
            moved += u32::from(server < 3 && server_at(&less, point) != server);
        }
        assert!(counts.iter().all(|count| (1500..3500).contains(count)), "{counts:?}");
        assert_eq!(moved, 0);
    }

    #[test]
    fn the_ring_wraps_around() {
        let ring = [(10, 0), (20, 1)];
        assert_eq!([0, 10, 11, 20, 21].map(|point| server_at(&ring, point)), [0, 0, 1, 1, 0]);
    }
}
