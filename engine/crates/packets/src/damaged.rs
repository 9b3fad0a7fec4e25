//! Tests of captures whose packets and blocks have wrong lengths and times.

use crate::capture_file::CaptureFile;
use crate::capture_file::tests::block;

#[test]
fn a_packet_of_impossible_length_is_no_cut_file() {
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
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// What follows `packets` packets of a file with these bytes: an error, or whether it seems to be cut off.
fn after(packets: usize, bytes: &[u8]) -> Result<bool, String> {
    let mut read = CaptureFile::open(bytes).expect("a capture");
    for _ in 0..packets {
        assert!(read.next().expect("a packet").is_some());
    }
    read.next().map(|packet| assert!(packet.is_none()))?;
    Ok(read.is_cut_off())
}

#[test]
fn a_block_of_wrong_length_is_no_cut_file() {
    let head = block(0x0a0d_0d0a, &bytes(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
    let interface = block(1, &bytes(&[1, 0]));
    let packet = block(6, &bytes(&[0, 0, 0, 4, 4, 0x6463_6261]));
    let longer = block(6, &bytes(&[0, 0, 0, 5, 5, 0x6463_6261]));
    let with_length = |of: &[u8], at: usize, length: u32| {
        [&of[..at], &length.to_le_bytes(), &of[at + 4..]].concat()
    };
    let before = [&head[..], &interface, &packet].concat();
    for length in [0, 7, 12, 33, 40, 64, 1 << 20, u32::MAX] {
        for (of, packets, before) in
            [(&head, 0, &[][..]), (&interface, 0, &head), (&packet, 1, &before)]
        {
            let damaged = with_length(of, 4, length);
            for behind in [&packet[..], &[]] {
                let error = after(packets, &[before, &damaged, behind].concat());
                let told = format!("packet {}: it is damaged", packets + 1);
                assert!(error.is_err_and(|error| error.starts_with(&told)), "{length}");
            }
        }
    }
    let other_end = with_length(&packet, packet.len() - 4, 32);
    for damaged in [longer, other_end] {
        assert!(after(1, &[&before[..], &damaged, &packet].concat()).is_err());
    }
    for end in 1..packet.len() {
        assert_eq!(after(1, &[&before[..], &packet[..end]].concat()), Ok(true), "{end}");
    }
    assert_eq!(after(1, &before), Ok(false));
}

#[test]
fn a_fraction_of_a_whole_second_is_damage() {
    for (magic, second) in [(0xa1b2_c3d4, 1_000_000), (0xa1b2_3c4d, 1_000_000_000)] {
        let frame = |fraction| [5, fraction, 4, 4, 0x6463_6261];
        let file = |fraction| {
            let header = [magic, 4 << 16 | 2, 0, 0, 65535, 1];
            bytes(&[&header[..], &frame(second - 1), &frame(fraction)].concat())
        };
        assert_eq!(after(2, &file(0)), Ok(false));
        for fraction in [second, u32::MAX] {
            let told = after(1, &file(fraction));
            assert!(told.is_err_and(|error| error.starts_with("packet 2: it is damaged")));
        }
    }
}
