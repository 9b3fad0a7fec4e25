//! Why a capture has no next packet: its bytes end, or its lengths are impossible.

use pcap_parser::{PcapError, PcapHeader, nom};

pub(crate) const PCAPNG_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
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

/// The same for a block of a pcapng file. The head of a section has its own order of bytes.
pub(crate) fn check_length(big_endian: bool, bytes: &[u8]) -> Result<(), Broken> {
    let possible = 12..=MOST_BLOCK_BYTES as u32;
    match number_at(bytes, 4, big_endian) {
        Some(length) if !bytes.starts_with(&PCAPNG_MAGIC) && !possible.contains(&length) => {
            Err(Broken::Damaged("no block is as long"))
        }
        _ => Ok(()),
    }
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
