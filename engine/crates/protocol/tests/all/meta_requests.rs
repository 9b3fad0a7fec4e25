//! The flags of meta commands, read from whole lines.

use cachemark_protocol::meta::request::{MetaError, MetaMode, MetaOptions};
use cachemark_protocol::text::command::Command;
use cachemark_protocol::text::request::{Parsed, parse};
use proptest::prelude::*;

fn options(line: &str) -> Result<MetaOptions<'_>, MetaError> {
    match parse(line.as_bytes()) {
        Parsed::Command(Command::Meta(request), _) => request.options(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_flag_is_parsed() {
    let read = options("ms k 2 b q I x T30 F9 C7 E8 MA N5 O123 k c\r\n").expect("flags");
    assert!(read.letters.iter().eq(*b"bqIxTFCEMNOkc"));
    let expected = MetaOptions {
        letters: read.letters,
        opaque: b"O123",
        base64: true,
        quiet: true,
        invalidate: true,
        remove_value: true,
        exptime: Some(30),
        client_flags: 9,
        expected_cas: Some(7),
        new_cas: Some(8),
        mode: MetaMode::Append,
        vivify: Some(5),
        ..MetaOptions::default()
    };
    assert_eq!(read, expected);
    let read = options("ma k v D5 J13 M- R-1 u h\r\n").expect("flags");
    assert_eq!((read.delta, read.initial, read.mode), (Some(5), 13, MetaMode::Decrement));
    assert!(read.value && read.no_update && read.access_info && read.recache == Some(-1));
}

#[test]
fn each_error_is_reported() {
    for (line, fault) in [
        ("mg k !\r\n", MetaError::NoLetter),
        ("mg k v v\r\n", MetaError::Duplicate),
        ("mg k S\r\n", MetaError::Unknown),
        ("mg k T\r\n", MetaError::BadToken),
        ("mg k O123456789012345678901234567890123\r\n", MetaError::LongOpaque),
        ("ms k 1 Fx\r\n", MetaError::BadClientFlags),
        ("ms k 1 MX\r\n", MetaError::BadStoreMode),
        ("ma k MA\r\n", MetaError::BadArithmeticMode),
        ("ma k Dx\r\n", MetaError::BadDelta),
        ("ma k J-1\r\n", MetaError::BadInitial),
        ("mg k a b c d e f g h i j k l m n o p q r s t u\r\n", MetaError::TooMany),
        ("mg k Tx S T! !\r\n", MetaError::NoLetter),
        ("mg k Tx 1\r\n", MetaError::Unknown),
        ("mg k Tx v v\r\n", MetaError::Duplicate),
        ("ms k 1 Tx b\r\n", MetaError::BadKey),
        ("ms k 1 b Tx Fx\r\n", MetaError::BadToken),
        ("ms k 1 O12345678901234567890123456789012 MX\r\n", MetaError::BadStoreMode),
        ("ms k 1 M\r\n", MetaError::BadStoreMode),
        ("mg k b v q u h l I x k s t c f N1 R1 T1 C1 E1 F1\r\n", MetaError::TooMany),
    ] {
        assert_eq!(options(line), Err(fault), "{line}");
    }
}

proptest! {
    #[test]
    fn any_flags_are_parsed_without_panic(
        verb in "m[gsdae]",
        flags in proptest::collection::vec("[!-~]{1,12}", 0..25),
    ) {
        let line = format!("{verb} key 5 {}\r\n", flags.join(" "));
        if let Parsed::Command(Command::Meta(request), _) = parse(line.as_bytes()) {
            let _ = request.options();
        }
    }
}
