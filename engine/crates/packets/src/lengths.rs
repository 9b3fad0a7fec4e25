//! Why a capture has no next packet: its bytes end, or its lengths are impossible.

use pcap_parser::{PcapError, PcapHeader, nom};

pub(crate) const PCAPNG_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// The order of bytes in the head of a section.
const BIG_ENDIAN: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];
/// A larger block is damaged: packets have at most 256 KiB.
pub(crate) const MOST_BLOCK_BYTES: usize = 1 << 24;
/// A packet that is larger than this, and than the capture allowed, is damaged.
const MOST_PACKET_BYTES: u32 = 1 << 18;

/// The length of a packet of a pcap file must be possible. Else the rest of the file would seem to be one that is cut off.
pub(crate) fn check_captured(header: &PcapHeader, bytes: &[u8]) -> Result<(), Broken> {
    let most = header.snaplen.clamp(MOST_PACKET_BYTES, MOST_BLOCK_BYTES as u32);
    match number_at(bytes, 8, header.is_bigendian()) {
        Some(captured) if captured > most => Err(Broken::Damaged("no packet is as long")),
        _ => Ok(()),
    }
}

/// The first of these blocks of a pcapng file, if all of it is there: its length stands at its begin and at its end. The
/// head of a section has its own order of bytes.
pub(crate) fn whole_block(big_endian: bool, bytes: &[u8]) -> Result<&[u8], Broken> {
    let order = bytes.get(8..12).ok_or(Broken::Incomplete)?;
    let big_endian =
        if bytes.starts_with(&PCAPNG_MAGIC) { order == BIG_ENDIAN } else { big_endian };
    let length = number_at(bytes, 4, big_endian).map_or(0, |length| length as usize);
    if !(12..=MOST_BLOCK_BYTES).contains(&length) {
        return Err(Broken::Damaged("no block is as long"));
    }
    let block = bytes.get(..length).ok_or(Broken::Incomplete)?;
    match number_at(block, length - 4, big_endian) {
        Some(again) if again as usize == length => Ok(block),
        _ => Err(Broken::Damaged("its length is another one at its end")),
    }
}

/// Whether a block that seems to be cut off ends before its length says so: behind its end is nothing or a whole block.
pub(crate) fn ends_before(big_endian: bool, bytes: &[u8]) -> bool {
    let ends_at = |end: &usize| {
        [false, true].map(|order| number_at(bytes, end - 4, order)).contains(&Some(*end as u32))
            && (*end == bytes.len() || whole_block(big_endian, &bytes[*end..]).is_ok())
    };
    (12..=bytes.len()).step_by(4).any(|end| ends_at(&end))
}

fn number_at(bytes: &[u8], at: usize, big_endian: bool) -> Option<u32> {
    let number = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(if big_endian { u32::from_be_bytes(number) } else { u32::from_le_bytes(number) })
}

/// Why there is no block.
pub(crate) enum Broken {
    /// More bytes are needed.
    Incomplete,
    Damaged(&'static str),
}

impl From<nom::Err<PcapError<&[u8]>>> for Broken {
    fn from(error: nom::Err<PcapError<&[u8]>>) -> Broken {
        match error {
            nom::Err::Incomplete(_) => Broken::Incomplete,
            _ => Broken::Damaged("no block of a capture"),
        }
    }
}
