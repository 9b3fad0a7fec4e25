//! The verb `store`: what a person does with named stores in shared memory.

use std::os::unix::fs::MetadataExt;
use std::process::{self, Command, Stdio};

use cachemark_storage::Mode;
use cachemark_store::{NamedStore, now_s};

/// The exit status, stdout and stderr of the verb.
fn store(words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cachemark-engine"));
    let ended = command.arg("store").args(words).output().expect("our own program");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (ended.status.code(), text(ended.stdout), text(ended.stderr))
}

struct Name(String);

impl Drop for Name {
    fn drop(&mut self) {
        let _ = NamedStore::destroy(&self.0);
    }
}

#[test]
fn a_store_is_made_shown_emptied_and_destroyed() {
    let name = Name(format!("test-verb-{}", process::id()));
    let (made, path, _) = store(&["init", &name.0, "--memory", "1m", "--mode", "0660"]);
    assert_eq!((made, path), (Some(0), format!("{0}: /dev/shm/cachemark-store.{0}\n", name.0)));
    let opened = NamedStore::open(&name.0).expect("the store");
    opened.store(Mode::Set, b"k", 7, 0, b"v", now_s());
    opened.store(Mode::Set, b"\xff", 0, 0, b"\xfe", now_s());
    let (_, shown, _) = store(&["stat", &name.0, "--json"]);
    assert!(shown.contains("\"limit_bytes\":1048576") && shown.contains("\"items\":2"), "{shown}");
    let (_, table, _) = store(&["stat", &name.0]);
    assert!(table.starts_with("items        2\n"), "{table}");
    let (_, keys, _) = store(&["dump", &name.0]);
    let mut lines: Vec<&str> = keys.lines().collect();
    lines.sort_unstable();
    let expected = [
        r#"{"key":"k","flags":7,"expires_s":0,"bytes":1}"#,
        r#"{"key_base64":"/w==","flags":0,"expires_s":0,"bytes":1}"#,
    ];
    assert_eq!(lines, expected);
    assert!(store(&["dump", &name.0, "--values"]).1.contains(r#""value_base64":"/g==""#));
    let own = std::fs::metadata(opened.path()).expect("its file").uid();
    for (owner, status) in [(own, Some(0)), (own + 1, Some(2))] {
        let (ended, _, said) = store(&["stat", &name.0, "--owner", &owner.to_string()]);
        assert_eq!((ended, said.contains("name its owner")), (status, status != Some(0)), "{said}");
    }
    assert_eq!(store(&["flush", &name.0]).0, Some(0));
    assert_eq!(opened.usage(now_s()).items, 0);
    assert_eq!(store(&["destroy", &name.0]).0, Some(0));
    assert!(NamedStore::open(&name.0).is_err());
}

/// `head` closes the pipe before the dump, which is larger than a pipe, has ended.
#[test]
fn a_reader_may_have_read_enough_of_a_dump() {
    let name = Name(format!("test-pipe-{}", process::id()));
    assert_eq!(store(&["init", &name.0]).0, Some(0));
    let opened = NamedStore::open(&name.0).expect("the store");
    for number in 0..5000 {
        opened.store(Mode::Set, format!("{number:0200}").as_bytes(), 0, 0, b"v", now_s());
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_cachemark-engine"));
    command.args(["store", "dump", &name.0]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut dump = command.spawn().expect("our own program");
    drop(dump.stdout.take());
    let ended = dump.wait_with_output().expect("our own program");
    assert_eq!((ended.status.code(), ended.stderr), (Some(0), Vec::new()));
}

#[test]
fn each_refusal_has_a_sentence_and_a_remedy() {
    for (words, says) in [
        (&["stat", "no-such-store"][..], "there is no store \"no-such-store\": make it first"),
        (&["flush", "no-such-store"], "make it first"),
        (&["destroy", "no-such-store"], "make it first"),
        (&["dump", "a/b"], "is no name of a store"),
        (&["init", "x", "--memory", "lots"], "write 1048576, 512k, 64m or 1g"),
        (&["init", "x", "--memory", "63k"], "needs 65536 bytes of memory, and 64512 were given"),
        (&["init", "x", "--mode", "1777"], "write 0600 or 0660"),
        (&["init", "x", "--hash-power", "40"], "not between 10 and 32"),
        (&["init", "x", "--memory", "1m", "--hash-power", "20"], "more than half"),
    ] {
        let (status, _, error) = store(words);
        assert!(status == Some(2) && error.contains(says), "{words:?}: {status:?} {error}");
    }
}

#[test]
fn a_store_larger_than_shared_memory_has_a_note() {
    let name = Name(format!("test-too-large-{}", process::id()));
    let (made, _, note) = store(&["init", &name.0, "--memory", "1024g"]);
    assert_eq!(made, Some(0), "{note}");
    assert!(note.contains("less than the store may use"), "{note}");
    let small = Name(format!("test-small-{}", process::id()));
    let (made, _, note) = store(&["init", &small.0, "--memory", "64k"]);
    assert_eq!((made, note.as_str()), (Some(0), ""));
}
