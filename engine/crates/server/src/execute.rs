//! What each command does to the store, and its reply.

use std::sync::atomic::Ordering;

use cachemark_protocol::text::command::{Command, Store, StoreVerb};
use cachemark_storage::{Arithmetic, Item, Lookup, Mode, Outcome};

use crate::state::State;
use crate::stats;

/// What memcached's own header adds to key and value when it judges an item's size.
pub const ITEM_HEADER_BYTES: u64 = 59;

/// What a command is carried out with.
pub struct Turn<'a> {
    pub state: &'a State,
    pub now_s: u32,
    pub out: &'a mut Vec<u8>,
}

impl Turn<'_> {
    /// Whether an item of so many bytes of key and value may be stored.
    pub fn fits(&self, bytes: u64) -> bool {
        bytes + ITEM_HEADER_BYTES <= self.state.settings.item_bytes_max
    }

    /// A set failed: the value that is there is stale now and must not be served.
    pub fn drop_stale(&self, key: &[u8]) {
        self.state.store.discard(key, self.now_s);
    }
}

pub fn say(out: &mut Vec<u8>, noreply: bool, reply: &[u8]) {
    if !noreply {
        out.extend_from_slice(reply);
    }
}

/// Store a value; the reply line.
pub fn store(store: &Store<'_>, value: &[u8], turn: &Turn<'_>) -> &'static [u8] {
    let mode = match store.verb {
        StoreVerb::Set => Mode::Set,
        StoreVerb::Add => Mode::Add,
        StoreVerb::Replace => Mode::Replace,
        StoreVerb::Append => Mode::Append,
        StoreVerb::Prepend => Mode::Prepend,
        StoreVerb::Cas => Mode::Cas(store.cas),
    };
    let items = &turn.state.store;
    if matches!(mode, Mode::Append | Mode::Prepend) {
        let there = items.value_length(store.key, turn.now_s).unwrap_or(0);
        if !turn.fits((store.key.len() + there + value.len()) as u64) {
            return b"NOT_STORED\r\n";
        }
    }
    match items.store(mode, store.key, store.flags, store.exptime, value, turn.now_s) {
        Some(Outcome::Stored) => b"STORED\r\n",
        Some(Outcome::NotStored) => b"NOT_STORED\r\n",
        Some(Outcome::Exists) => b"EXISTS\r\n",
        Some(Outcome::NotFound) => b"NOT_FOUND\r\n",
        None => {
            if mode == Mode::Set {
                turn.drop_stale(store.key);
            }
            turn.state.no_memory.fetch_add(1, Ordering::Relaxed);
            b"SERVER_ERROR out of memory storing object\r\n"
        }
    }
}

/// Answer a get of one key.
#[inline]
pub fn get_one(lookup: &Lookup<'_>, turn: &mut Turn<'_>) {
    let out = &mut *turn.out;
    let reply = |item: &Item<'_>| append_value(out, lookup.key(), item, false, b"\r\nEND\r\n");
    if turn.state.store.get_by_lookup(lookup, turn.now_s, reply).is_none() {
        turn.out.extend_from_slice(b"END\r\n");
    }
}

/// Answer one key of a get; nothing when it is not there.
pub fn get(lookup: &Lookup<'_>, cas: bool, turn: &mut Turn<'_>) {
    let out = &mut *turn.out;
    let reply = |item: &Item<'_>| append_value(out, lookup.key(), item, cas, b"\r\n");
    turn.state.store.get_by_lookup(lookup, turn.now_s, reply);
}

/// The same, with a new exptime.
pub fn get_and_touch(key: &[u8], exptime: i64, cas: bool, turn: &mut Turn<'_>) {
    let out = &mut *turn.out;
    let reply = |item: &Item<'_>| append_value(out, key, item, cas, b"\r\n");
    turn.state.store.get_and_touch(key, exptime, turn.now_s, reply);
}

/// Carry out a command that has no data and names at most one key; true when the connection is to
/// be closed.
pub fn execute(command: &Command<'_>, turn: &mut Turn<'_>) -> bool {
    let Turn { state, now_s, out } = turn;
    match *command {
        Command::Delete { key, noreply } => {
            let found = state.store.delete(key, *now_s);
            say(out, noreply, if found { b"DELETED\r\n" } else { b"NOT_FOUND\r\n" });
        }
        Command::Arithmetic { key, delta, increment, noreply } => {
            let result = state.store.arithmetic(key, delta, increment, *now_s);
            if !noreply {
                append_result(out, result);
            }
        }
        Command::Touch { key, exptime, noreply } => {
            let found = state.store.touch(key, exptime, *now_s);
            say(out, noreply, if found { b"TOUCHED\r\n" } else { b"NOT_FOUND\r\n" });
        }
        Command::FlushAll { delay, noreply } => {
            state.store.flush(delay, *now_s);
            state.flushes.fetch_add(1, Ordering::Relaxed);
            say(out, noreply, b"OK\r\n");
        }
        Command::Version => {
            out.extend_from_slice(b"VERSION ");
            out.extend_from_slice(state.version.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        Command::MemoryLimit { mebibytes, noreply } => {
            // The limit is fixed: to set it to what it is succeeds.
            let same = mebibytes.checked_mul(1 << 20) == Some(state.settings.memory_bytes as u64);
            let failed: &[u8] = b"MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n";
            say(out, noreply, if same { b"OK\r\n" } else { failed });
        }
        Command::Verbosity { noreply } => say(out, noreply, b"OK\r\n"),
        Command::Stats { topic } => stats::write(topic, state, out),
        Command::MetaNoop => out.extend_from_slice(b"MN\r\n"),
        Command::Quit => return true,
        // These span feeds, and are the session's.
        Command::Get { .. }
        | Command::Dump
        | Command::GetAndTouch { .. }
        | Command::Store(_)
        | Command::Meta(_) => {}
    }
    false
}

fn append_result(out: &mut Vec<u8>, result: Arithmetic) {
    match result {
        Arithmetic::Number(number) => {
            append_number(out, number);
            out.extend_from_slice(b"\r\n");
        }
        // The text protocol asks for no unique number here.
        Arithmetic::NotFound | Arithmetic::Exists => out.extend_from_slice(b"NOT_FOUND\r\n"),
        Arithmetic::NoRoom => out.extend_from_slice(b"SERVER_ERROR out of memory in incr\r\n"),
        Arithmetic::NonNumeric => out
            .extend_from_slice(b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
    }
}

// Inside what reads an item, most of the item need not be described.
#[inline(always)]
fn append_value<const END: usize>(
    out: &mut Vec<u8>,
    key: &[u8],
    item: &Item<'_>,
    cas: bool,
    end: &[u8; END],
) {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    // Most have none.
    if item.flags == 0 {
        out.extend_from_slice(b" 0 ");
    } else {
        out.push(b' ');
        append_number(out, u64::from(item.flags));
        out.push(b' ');
    }
    append_number(out, item.value.len() as u64);
    if cas {
        out.push(b' ');
        append_number(out, item.cas);
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(item.value);
    out.extend_from_slice(end);
}

/// Most numbers are short: to copy their digits would take longer than to make them.
#[inline(always)]
pub fn append_number(out: &mut Vec<u8>, number: u64) {
    match number {
        0..10 => out.push(b'0' + number as u8),
        10..100 => out.extend_from_slice(&PAIRS[number as usize]),
        100..1000 => {
            let [tens, ones] = PAIRS[number as usize % 100];
            out.extend_from_slice(&[b'0' + (number / 100) as u8, tens, ones]);
        }
        _ => append_long_number(out, number),
    }
}

#[inline(never)]
fn append_long_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// The digits of all numbers below 100.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};
