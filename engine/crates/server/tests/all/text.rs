//! The text and meta cases of conformance/server, played to the embedded server in all I/O modes and to the real
//! memcached, which is the reference.

use std::io::{BufRead, BufReader, Write};

use cachemark_properties::cases::{TextCase, expand, text};
use cachemark_server::IoMode;

use crate::targets::{Target, embedded, guarded, guarded_memcached, memcached, memcached_with};

fn cases() -> Vec<TextCase> {
    ["text.toml", "meta.toml"].map(text).into_iter().flatten().collect()
}

/// How the reply to a case differs from the expected one.
fn wrong(target: &Target, case: &TextCase, piece: usize) -> Option<String> {
    target.exchange(b"flush_all\r\n", usize::MAX, false);
    let expected = expand(&target.reply_to(case).replace("<version>", &target.told));
    let actual = target.exchange(&expand(&case.request), piece, case.closed);
    let shown = settled(&actual);
    (shown != expected).then(|| {
        format!(
            "{}: {} in pieces of {piece}\nexpected {:?}\nactual   {:?}\n",
            target.address,
            case.name,
            String::from_utf8_lossy(&expected[..expected.len().min(300)]),
            String::from_utf8_lossy(&shown[..shown.len().min(300)]),
        )
    })
}

/// Ignore cas numbers, and allow that a second passes between two commands.
fn settled(reply: &[u8]) -> Vec<u8> {
    reply.split_inclusive(|byte| *byte == b'\n').flat_map(settled_line).collect()
}

fn settled_line(line: &[u8]) -> Vec<u8> {
    let end = line.len() - line.iter().rev().take_while(|byte| b"\r\n".contains(byte)).count();
    let words: Vec<&[u8]> = line[..end].split(|byte| *byte == b' ').collect();
    let shown: Vec<Vec<u8>> = match words[0] {
        b"VALUE" if words.len() == 5 => {
            words[..4].iter().map(|word| word.to_vec()).chain([b"<cas>".to_vec()]).collect()
        }
        b"HD" | b"VA" | b"ME" => words.iter().map(|word| settled_flag(word)).collect(),
        _ => return line.to_vec(),
    };
    [&shown.join(&b' ')[..], &line[end..]].concat()
}

fn settled_flag(word: &[u8]) -> Vec<u8> {
    let number = |prefix: &str| -> Option<u64> {
        std::str::from_utf8(word).ok()?.strip_prefix(prefix)?.parse().ok()
    };
    if number("c").or(number("cas=")).is_some() {
        let name = word.iter().take_while(|byte| !byte.is_ascii_digit()).copied();
        return name.chain(*b"<cas>").collect();
    }
    let rounded = |prefix, left: u64| format!("{prefix}{}", left.div_ceil(30) * 30).into_bytes();
    if let Some(left) = number("exp=") {
        return rounded("exp=", left);
    }
    if let Some(since) = number("exp=-").filter(|since| *since > 1) {
        return rounded("exp=-", since);
    }
    match (number("t"), number("l"), number("la=")) {
        (Some(left), _, _) => rounded("t", left),
        (_, Some(1), _) => b"l0".to_vec(),
        (_, _, Some(1)) => b"la=0".to_vec(),
        _ => word.to_vec(),
    }
}

#[test]
fn the_embedded_server_answers_as_memcached() {
    let mut faults = Vec::new();
    for io in IoMode::available() {
        let (_server, target) = embedded(io);
        for case in cases() {
            faults.extend(wrong(&target, &case, usize::MAX));
            // Split at many places; large requests in larger pieces, to save time.
            let piece =
                if case.request.len() < 500 && !case.request.contains('{') { 1 } else { 4001 };
            faults.extend(wrong(&target, &case, piece));
            faults.extend(wrong(&target, &case, 7.max(piece)));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn memcached_agrees_with_the_cases() {
    let (_memcached, target) = memcached();
    let faults: Vec<String> =
        cases().iter().filter_map(|case| wrong(&target, case, usize::MAX)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_guarded_server_answers_as_memcached() {
    let mut faults = Vec::new();
    for io in IoMode::available() {
        let (_server, target) = guarded(io);
        for case in text("auth.toml") {
            faults.extend(wrong(&target, &case, usize::MAX));
            faults.extend(wrong(&target, &case, 1 + case.request.len() / 40));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn guarded_memcached_agrees_with_the_cases() {
    let (_memcached, target) = guarded_memcached();
    let cases = text("auth.toml");
    let faults: Vec<String> =
        cases.iter().filter_map(|case| wrong(&target, case, usize::MAX)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// memcached accepts no command before a dump on the same connection, so that these are no cases of the tables.
#[test]
fn a_dump_tells_of_each_item_as_memcached_does() {
    // Not compared: the time of the last use, the cas number and the slab's size.
    let dumped = |target: &Target| {
        target.exchange(b"flush_all\r\n", usize::MAX, false);
        let sets = b"set a%b\xc3 0 0 1\r\nx\r\nset c 7 2000000000 1\r\nx\r\nget c\r\n";
        target.exchange(sets, usize::MAX, false);
        let mut stream = target.connect();
        stream.write_all(b"lru_crawler metadump all\r\n").expect("a server that reads");
        let (mut reader, mut reply) = (BufReader::new(stream), String::new());
        while !reply.ends_with("END\r\n") {
            let bytes = reader.read_line(&mut reply).expect("a server that answers");
            assert!(bytes > 0, "{reply}");
        }
        let kept =
            |word: &&str| ["key=", "exp=", "fetch="].iter().any(|name| word.starts_with(name));
        let mut lines: Vec<String> = reply
            .lines()
            .map(|line| line.split(' ').filter(kept).collect::<Vec<_>>().join(" "))
            .collect();
        // Later versions begin with `OK`.
        lines.retain(|line| !line.is_empty());
        lines.sort();
        lines
    };
    let expected = ["key=a%25b%C3 exp=-1 fetch=no", "key=c exp=2000000000 fetch=yes"];
    // memcached's LRU maintainer uses the crawler too, which is then busy.
    let (_memcached, judge) = memcached_with(&["-o", "no_lru_maintainer"]);
    assert_eq!(dumped(&judge), expected);
    for io in IoMode::available() {
        let (_server, ours) = embedded(io);
        assert_eq!(dumped(&ours), expected, "{io:?}");
    }
}

/// Each command increments the counters that memcached increments.
#[test]
fn commands_are_counted_as_memcached_counts_them() {
    const COUNTED: [&str; 20] = [
        "cmd_get",
        "cmd_set",
        "cmd_flush",
        "cmd_touch",
        "cmd_meta",
        "get_hits",
        "get_misses",
        "delete_misses",
        "delete_hits",
        "incr_misses",
        "incr_hits",
        "decr_misses",
        "decr_hits",
        "cas_misses",
        "cas_hits",
        "cas_badval",
        "touch_hits",
        "touch_misses",
        "store_too_large",
        "store_no_memory",
    ];
    const SET: &str = "flush_all\r\nset h 0 0 1\r\nx\r\nset n 0 0 1\r\n5\r\nstats reset\r\n";
    let counts = |target: &Target, command: &str| {
        let request = format!("{SET}{command}\r\nstats\r\n");
        let reply = target.exchange(request.as_bytes(), usize::MAX, false);
        let reply = String::from_utf8_lossy(&reply).into_owned();
        COUNTED.map(|name| {
            let line = reply.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
            (name, line.unwrap_or_else(|| panic!("{name} in {reply}")).to_owned())
        })
    };
    let (_memcached, judge) = memcached();
    let (_server, ours) = embedded(IoMode::Events);
    for command in [
        "get no h",
        "gets h",
        "gat 9 no h",
        "gats 9 h",
        "touch no 9",
        "touch h 9",
        "mg no",
        "mg h v",
        "mg no T9",
        "mg h T9",
        "mg no N9",
        "mg no N9 T9",
        "mg h q",
        "mg no q",
        "mn",
        "me h",
        "me no",
        "md no",
        "md h",
        "md h C1",
        "delete no",
        "delete h",
        "incr no 1",
        "incr n 1",
        "decr no 1",
        "decr n 1",
        "incr h 1",
        "ma no",
        "ma n",
        "ma n MD",
        "ma no N0 J3",
        "ma n C1",
        "flush_all 9",
        "add h 0 0 1\r\nx",
        "add no 0 0 1\r\nx",
        "replace no 0 0 1\r\nx",
        "append h 0 0 1\r\nx",
        "append no 0 0 1\r\nx",
        "cas h 0 0 1 1\r\nx",
        "cas no 0 0 1 1\r\nx",
        "ms h 1\r\nx",
        "ms h 1 ME\r\nx",
        "ms no 1 MA\r\nx",
        "ms h 1 C1\r\nx",
        "ms no 1 C1\r\nx",
        "set h 0 -1 1\r\nx\r\nget h",
    ] {
        assert_eq!(counts(&ours, command), counts(&judge, command), "{command:?}");
    }
}
