//! `stats` and its topics: the counters and settings of this server, under memcached's names.

mod connections;
mod general;
mod items;
mod rows;
mod settings;

use crate::state::server_state::State;
use crate::state::stats::rows::Row;

/// The answer to a topic.
pub enum Answer {
    Rows(Vec<Row>),
    /// A reply of the text protocol that does not consist of rows.
    Text(Vec<u8>),
}

/// Append the text protocol's reply to `stats [topic]`. `socket` is the one that asks.
pub fn write(topic: &[u8], state: &State, socket: Option<i32>, out: &mut Vec<u8>) {
    match answer(topic, state, socket) {
        Some(Answer::Rows(rows)) => {
            for (name, value) in rows {
                out.extend_from_slice(format!("STAT {name} {value}\r\n").as_bytes());
            }
            out.extend_from_slice(b"END\r\n");
        }
        Some(Answer::Text(text)) => out.extend_from_slice(&text),
        None => out.extend_from_slice(b"ERROR\r\n"),
    }
}

/// The topics that may be shortened, as in memcached.
const SHORTENED: [&str; 6] = ["reset", "detail", "settings", "cachedump", "conns", "extstore"];

/// The answer to a topic; `None` if the topic does not exist.
pub fn answer(topic: &[u8], state: &State, socket: Option<i32>) -> Option<Answer> {
    let mut words = topic.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let name = match words.next() {
        None => return Some(Answer::Rows(general::table(state))),
        Some(word) => SHORTENED
            .into_iter()
            .find(|topic| topic.as_bytes().starts_with(word))
            .map_or(word, str::as_bytes),
    };
    // Words behind a topic without arguments are ignored, as in memcached.
    let rows = match name {
        b"settings" => settings::table(state),
        b"items" => items::items(state),
        b"slabs" => items::slabs(state),
        b"sizes" => items::sizes(state),
        // Datagrams get no list that grows with clients or keys: see `may_dump`.
        b"conns" if socket.is_none() => {
            return Some(Answer::Text(b"CLIENT_ERROR stats conns not allowed\r\n".to_vec()));
        }
        b"conns" => connections::table(state, socket),
        // There is no storage but memory.
        b"extstore" => Vec::new(),
        b"cachedump" if !state.may_dump(socket) => {
            return Some(Answer::Text(b"CLIENT_ERROR stats cachedump not allowed\r\n".to_vec()));
        }
        b"cachedump" => {
            return Some(Answer::Text(items::dump(words.next(), words.next(), state)));
        }
        b"detail" => return Some(Answer::Text(detail(words.next(), state, socket))),
        b"reset" => {
            state.reset_counters();
            return Some(Answer::Text(b"RESET\r\n".to_vec()));
        }
        _ => return None,
    };
    Some(Answer::Rows(rows))
}

/// The topics of the binary protocol. They cannot be shortened.
const BINARY: [&[u8]; 9] = [
    b"",
    b"settings",
    b"items",
    b"slabs",
    b"sizes",
    b"reset",
    b"detail on",
    b"detail off",
    b"detail dump",
];

/// The rows that the binary protocol answers to a topic; `None` if it does not have it.
pub fn binary_answer(topic: &[u8], state: &State, socket: Option<i32>) -> Option<Vec<Row>> {
    let is_detail = topic.starts_with(b"detail");
    if !BINARY.contains(&topic) || (is_detail && !state.settings.commands.dump) {
        return None;
    }
    Some(match answer(topic, state, socket)? {
        Answer::Rows(rows) => rows,
        Answer::Text(text) if topic == b"detail dump" => {
            vec![("detailed".into(), String::from_utf8_lossy(&text).into_owned())]
        }
        Answer::Text(_) => Vec::new(),
    })
}

/// `stats detail`: switch the counts by prefix on or off, or show them.
fn detail(what: Option<&[u8]>, state: &State, socket: Option<i32>) -> Vec<u8> {
    if !state.may_dump(socket) {
        return b"CLIENT_ERROR stats detail not allowed\r\n".to_vec();
    }
    match what {
        Some(b"on") => state.log.set_detail(true),
        Some(b"off") => state.log.set_detail(false),
        Some(b"dump") => {
            let mut out = Vec::new();
            state.prefixes.write(&mut out);
            return out;
        }
        _ => return b"CLIENT_ERROR usage: stats detail on|off|dump\r\n".to_vec(),
    }
    b"OK\r\n".to_vec()
}
