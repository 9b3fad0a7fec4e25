//! Lengths of packets and blocks that no capture has.

use pcap_parser::PcapHeader;

use crate::capture_file::{Broken, MOST_BLOCK_BYTES, PCAPNG_MAGIC};

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

#[cfg(test)]
mod tests {
    use crate::capture_file::CaptureFile;

    #[test]
    fn an_impossible_length_is_damage_and_no_cut_file() {
        let header = [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 262_144, 1];
        let frame = |captured: u32| [5, 0, captured, 4, 0x6463_6261];
        // The second one has its bytes in the other order, and two bytes are missing.
        for (captured, told) in [(4u32.swap_bytes(), Some("packet 2: it is damaged")), (6, None)] {
            let words = [&header[..], &frame(4), &frame(captured)].concat();
            for big_endian in [false, true] {
                let order =
                    |word: &u32| if big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
                let bytes: Vec<u8> = words.iter().flat_map(order).collect();
                let mut read = CaptureFile::open(&bytes[..]).expect("a capture");
                assert!(read.next().expect("a packet").is_some());
                let error = read.next().map(|packet| assert!(packet.is_none())).err();
                assert_eq!(error.as_deref().map(|error| &error[..23]), told);
                assert_eq!(read.is_cut_off(), told.is_none());
            }
        }
        let words = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28, 6];
        let section: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        for length in [7, u32::MAX] {
            let bytes = [&section[..], &length.to_le_bytes(), &[0; 40]].concat();
            let mut read = CaptureFile::open(&bytes[..]).expect("a capture");
            assert!(read.next().is_err_and(|error| error.contains("damaged")), "{length}");
        }
    }
}
