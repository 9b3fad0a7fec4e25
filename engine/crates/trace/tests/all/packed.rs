//! Packed traces: every frame and member, with its checksum, and no bomb.

use std::io::Cursor;

use cachemark_trace::{Format, ImportOptions, import, import_file};

use crate::common::{TWITTER, read};

#[test]
fn packed_files_are_unpacked() {
    let folder = tempfile::tempdir().expect("a folder");
    let plain = read(TWITTER, None).expect("a trace").recording;
    let zstd = ruzstd::encoding::compress_to_vec(
        TWITTER.as_bytes(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, TWITTER.as_bytes()).expect("memory");
    let gzip = gzip.finish().expect("memory");
    for (name, bytes) in
        [("a.zst", &zstd), ("a.gz", &gzip), ("a.csv", &TWITTER.as_bytes().to_vec())]
    {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        let imported = import_file(&path, &ImportOptions::default()).expect("a trace");
        assert_eq!(imported.recording.ops, plain.ops, "{name}");
    }
    let both = |packed: &[u8]| [packed, packed].concat();
    let skippable = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &zstd].concat();
    for (name, bytes, times) in
        [("two.zst", both(&zstd), 2), ("two.gz", both(&gzip), 2), ("skip.zst", skippable, 1)]
    {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        let options = ImportOptions { format: Some(Format::Twitter), ..ImportOptions::default() };
        let lines = import_file(&path, &options).map(|imported| imported.lines);
        // The second part begins at 0 s again.
        let all = if times == 2 { Err("before") } else { Ok(6) };
        assert_eq!(
            lines.map_err(|error| if error.contains("before") { "before" } else { "?" }),
            all
        );
    }
    for (name, packed) in [("cut.zst", &zstd), ("cut.gz", &gzip)] {
        for lacks in [1, 5, packed.len() / 2] {
            let path = folder.path().join(name);
            std::fs::write(&path, &packed[..packed.len() - lacks]).expect("a file");
            let refused = import_file(&path, &ImportOptions::default()).expect_err("half a file");
            assert!(refused.contains(&format!("{name}: line ")), "{refused}");
            assert!(refused.ends_with("the packed file is cut off"), "{lacks}: {refused}");
        }
    }
}

#[test]
fn damaged_and_endless_files_are_refused() {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        import_file(&path, &ImportOptions::default()).expect_err(name)
    };
    let mut zstd = compress_to_vec(TWITTER.as_bytes(), CompressionLevel::Uncompressed);
    let followed = refused("z.zst", &[&zstd[..], b"no frame"].concat());
    assert!(followed.ends_with("a zstd frame is damaged"), "{followed}");
    // Other content with the same checksum: the last four bytes.
    let at = zstd.len() - 10;
    zstd[at] ^= 1;
    assert!(refused("a.zst", &zstd).contains("checksum"), "{}", refused("a.zst", &zstd));
    // The same line again and again.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut gzip, &vec![b'\n'; 30_000]).expect("memory");
    let empty = refused("n.gz", &gzip.finish().expect("memory"));
    assert!(empty.contains("10000 empty lines: this is no trace"), "{empty}");
    let zeros = compress_to_vec(&vec![b'x'; 40 << 20][..], CompressionLevel::Fastest);
    let endless = refused("x.zst", &zeros);
    assert!(endless.contains("longer than 65536 bytes"), "{endless}");
    // A block of 128 KiB of the same byte takes 4 bytes: 40,000 times as much as what is packed.
    let short = b"op,key\nget,a\n".repeat(3_000_000);
    let large = refused("r.zst", &compress_to_vec(&short[..], CompressionLevel::Fastest));
    assert!(large.contains("1000 times as large"), "{large}");
}

#[test]
fn other_packings_and_encodings_are_named_with_the_remedy() {
    let utf_16 =
        |order: fn(u16) -> [u8; 2]| TWITTER.encode_utf16().flat_map(order).collect::<Vec<u8>>();
    let tar = [&b"a.csv"[..], &[0; 252], b"ustar\x0000", &[0; 247], TWITTER.as_bytes()].concat();
    for (begin, said) in [
        (b"BZh91AY&SY\xff\n".to_vec(), "packed by bzip2: unpack it by bunzip2"),
        (b"\xfd7zXZ\0\0\x04\n".to_vec(), "packed by xz: unpack it by unxz"),
        (b"\x04\x22\x4d\x18\x64\x40\xa7\n".to_vec(), "packed by lz4: unpack it by unlz4"),
        (b"PK\x03\x04\x14\0\n".to_vec(), "a zip archive"),
        (b"PK\x03\x04\n\0".to_vec(), "a zip archive"),
        (b"PAR1\x15\0\n".to_vec(), "a Parquet file"),
        (
            [&b"\xff\xfe"[..], &utf_16(u16::to_le_bytes)].concat(),
            "UTF-16: write it as UTF-8 by iconv -f UTF-16 ",
        ),
        (utf_16(u16::to_le_bytes), "iconv -f UTF-16LE -t UTF-8"),
        (utf_16(u16::to_be_bytes), "iconv -f UTF-16BE -t UTF-8"),
        (tar, "a tar archive"),
        (b"caf\xe9,get\n".to_vec(), "it is not UTF-8"),
        (b"time,op,key\r0,get,a\r".to_vec(), "lines end with CR alone: write them with LF by tr"),
        (b"op,key\rget,a\r".repeat(9000), "lines end with CR alone"),
    ] {
        let refused = import(&mut Cursor::new(begin), &ImportOptions::default()).expect_err(said);
        assert!(refused.starts_with("line 1: ") && refused.contains(said), "{refused}");
    }
}
