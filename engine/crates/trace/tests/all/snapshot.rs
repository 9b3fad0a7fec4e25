//! Lines of `lru_crawler metadump` become the items of a trace.

use std::collections::BTreeMap;

use cachemark_trace::file::{Keys, TraceReader};
use cachemark_trace::{Conversion, Output, SNAPSHOT_SECONDS, Snapshot, convert_requests};

const NOW_S: u64 = 1_795_829_300;

type Read = (u64, Vec<u8>, Option<u32>, Option<u32>, u32, Option<bool>);

fn snapshot(lines: &[&str], sampled: u32) -> Snapshot {
    let mut snapshot = Snapshot::new(NOW_S, sampled, BTreeMap::new());
    lines.iter().for_each(|line| snapshot.add(line));
    snapshot.finish();
    snapshot
}

/// Time in seconds, key, its original length, size of the value, seconds left, whether it was read.
fn items(
    mut snapshot: Snapshot,
    anonymous: bool,
    sampled: u32,
) -> (Vec<Read>, BTreeMap<String, u64>) {
    let conversion = Conversion {
        output: Output::Cachemark,
        anonymous,
        rounded: false,
        sampled,
        tolerant: true,
        source: None,
    };
    let mut bytes = Vec::new();
    let written = convert_requests(&mut snapshot, "metadump", &conversion, &mut bytes).unwrap();
    assert_eq!(written.origin.sampled, sampled);
    assert_eq!(written.origin.keys, if anonymous { Keys::Anonymous } else { Keys::Plain });
    let mut reader = TraceReader::new(&bytes[..]).unwrap();
    let mut found = Vec::new();
    while let Some(block) = reader.next_block().unwrap() {
        for record in block {
            let of = record.unwrap();
            assert_eq!(of.operation, "item");
            let at_s = of.at_ns.unwrap() / 1_000_000_000;
            found.push((at_s, of.key.to_vec(), of.key_bytes, of.length, of.ttl_s, of.succeeded));
        }
    }
    let summary = written.summary;
    let all = summary.left_out.into_iter().chain(summary.server).collect();
    (found, all)
}

#[test]
fn items_have_age_size_and_rest_of_their_life() {
    let lines = [
        // memcached 1.6.18: no flags are shown, so these four bytes count as the value's.
        "key=ab exp=1795829366 la=1795829266 cas=1 fetch=no cls=1 size=68",
        "key=c%3Ad exp=-1 la=1795829166 cas=2 fetch=yes cls=1 size=65",
        "key=f exp=-1 la=1795829167 cas=0 fetch=yes cls=1 size=65 flags=7",
    ];
    let (found, counts) = items(snapshot(&lines, 1), false, 1);
    assert_eq!(
        found,
        [
            (0, b"c:d".to_vec(), None, Some(3), 0, Some(true)),
            (1, b"f".to_vec(), None, Some(9), 0, Some(true)),
            (100, b"ab".to_vec(), None, Some(7), 66, Some(false)),
        ]
    );
    assert_eq!(counts, BTreeMap::from([(SNAPSHOT_SECONDS.to_owned(), 134)]));
}

#[test]
fn what_is_no_item_is_counted() {
    let lines = [
        "key=a exp=1795829300 la=1795829266 cas=1 fetch=no cls=1 size=68",
        "key=a exp=-1 la=1795829266 cas=1 fetch=no cls=1 size=5",
        "key=%4 exp=-1 la=1795829266 cas=1 fetch=no cls=1 size=68",
        "key= exp=-1 la=1795829266 cas=1 fetch=no cls=1 size=68",
        "key=a exp=-1 la=-5 cas=1 fetch=no cls=1 size=68",
        "key=a exp=-1 la=1 cas=1 fetch=no cls=1 size=99999999999999999999",
        "",
        "\u{fffd} = =",
    ];
    let (found, counts) = items(snapshot(&lines, 1), true, 1);
    assert_eq!(found, []);
    assert_eq!(counts["that have expired"], 1);
    assert_eq!(counts["that were not understood"], 7);
    // A clock of items that runs ahead of the server's own.
    let ahead = "key=a exp=-1 la=1795829400 cas=1 fetch=no cls=1 size=68";
    assert_eq!(items(snapshot(&[ahead], 1), true, 1).1[SNAPSHOT_SECONDS], 0);
}

#[test]
fn a_sample_is_taken_once_and_binary_keys_are_renamed() {
    let line = |number: u32| {
        format!("key=u%3A%FF{number} exp=-1 la=1795829200 cas=1 fetch=no cls=1 size=90")
    };
    let lines: Vec<String> = (0..4000).map(line).collect();
    let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
    let found = items(snapshot(&texts, 4), true, 4).0;
    assert!((850..1150).contains(&found.len()), "{}", found.len());
    assert!(found.iter().all(|item| item.1.starts_with(b"a:") && item.2 >= Some(4)));
}
