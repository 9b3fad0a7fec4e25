//! A store in shared memory: processes see each other's items, and the store works after a writer was killed at any
//! moment.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cachemark_storage::{Mode, Outcome, Store};

const NOW: u32 = 1_700_000_000;
const KEYS: u32 = 3000;
/// The environment variable with the path of the store that a child process writes to.
const STORE: &str = "CACHEMARK_TEST_STORE";

fn value(key: u32, round: u32) -> Vec<u8> {
    let length = 8 + (key as usize * 37 + round as usize * 11) % 2000;
    let mut value = vec![(key ^ round) as u8; length];
    value[..4].copy_from_slice(&key.to_le_bytes());
    value[4..8].copy_from_slice(&round.to_le_bytes());
    value
}

fn is_whole(key: u32, bytes: &[u8]) -> bool {
    let round = bytes.get(4..8).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    round.is_some_and(|round| bytes == value(key, round))
}

/// The code of the child processes. As a test it does nothing.
#[test]
fn child() {
    let Some(path) = std::env::var_os(STORE) else { return };
    let store = Store::open(Path::new(&path)).expect("the parent's store");
    let mut state = std::process::id();
    for round in 0.. {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let key = (state >> 8) % KEYS;
        match round % 32 {
            0 => {
                store.delete(&key.to_be_bytes(), NOW);
            }
            1 => {
                let large = vec![1; 200_000];
                store.store(Mode::Set, format!("large-{}", key % 20).as_bytes(), 0, 0, &large, NOW);
            }
            _ => {
                store.store(Mode::Set, &key.to_be_bytes(), 0, 0, &value(key, round), NOW);
            }
        }
        if round % 5000 == 4999 {
            store.flush(0, NOW);
        }
    }
}

struct Writer(Child);

impl Writer {
    fn start(path: &Path) -> Writer {
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command.args(["--exact", "processes::child", "--nocapture"]).env(STORE, path);
        Writer(command.stdout(Stdio::null()).spawn().expect("a child"))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_store_works_after_a_writer_was_killed() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("shared memory");
    let path = folder.path().join("store");
    let store = Store::create(&path, 4 << 20, None).expect("a store");
    for round in 0..40_u32 {
        let stored = || store.usage(NOW).items;
        let before = (store.segments_begun(), Instant::now());
        let writers = [Writer::start(&path), Writer::start(&path)];
        // Kill them during their work, each time at another moment.
        while store.segments_begun() < before.0 + 200 + u64::from(round) * 7 {
            assert!(before.1.elapsed() < Duration::from_secs(60), "the writers do not write");
            (0..KEYS).for_each(|key| check(&store, key));
        }
        drop(writers);
        let mut live = 0;
        for key in 0..KEYS {
            check(&store, key);
            live += u64::from(store.value_length(&key.to_be_bytes(), NOW).is_some());
        }
        let large = |n: &u32| store.value_length(format!("large-{n}").as_bytes(), NOW).is_some();
        live += (0..20).filter(large).count() as u64;
        assert_eq!(stored(), live, "round {round}: all that is counted can be read");
        let outcome = store.store(Mode::Set, b"mine", 0, 0, &[7; 500], NOW);
        assert_eq!(outcome, Some(Outcome::Stored));
        assert_eq!(store.get(b"mine", None, NOW, |item| item.value.to_vec()), Some(vec![7; 500]));
        assert!(store.delete(b"mine", NOW));
    }
}

/// Both kinds of reads return a value that a writer wrote.
fn check(store: &Store, key: u32) {
    let name = key.to_be_bytes();
    store.get(&name, None, NOW, |item| assert!(is_whole(key, item.value), "key {key}"));
    store.peek(&name, NOW, |seen| seen.byte(seen.length() - 1));
}

#[test]
fn processes_agree_on_what_a_store_is() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("shared memory");
    let path = folder.path().join("store");
    let one = Store::create(&path, 2 << 20, Some(12)).expect("a store");
    assert!(Store::create(&path, 2 << 20, None).is_err(), "it is there already");
    let other = Store::open(&path).expect("the same store");
    assert_eq!(one.store(Mode::Set, b"k", 7, 60, b"value", NOW), Some(Outcome::Stored));
    let read = |now_s| other.get(b"k", None, now_s, |item| (item.value.to_vec(), item.flags));
    assert_eq!(read(NOW), Some((b"value".to_vec(), 7)));
    assert_eq!(other.peek(b"k", NOW, |seen| (seen.length(), seen.byte(4))), Some((5, b'e')));
    assert_eq!(read(NOW + 60), None);
    assert_eq!(other.peek(b"k", NOW + 60, |_| ()), None);
    std::fs::write(folder.path().join("other"), vec![0; 10_000]).expect("a file");
    assert!(Store::open(&folder.path().join("other")).is_err());
}
