//! libmemcached's `memccapable`, which runs 27 tests of each protocol against a server.
//!
//! Its tests of `delete` expect that more than one word behind the key is refused. memcached refused that until
//! 1.6.38; the embedded server takes it, as 1.6.45 does.

use std::process::Command;

use cachemark_server::IoMode;

use crate::targets;

const MEMCCAPABLE: &str = "memccapable on PATH: apt-get install libmemcached-tools";

fn capable(protocol: &str, refused: &[&str]) {
    for io in IoMode::available() {
        let (_server, target) = targets::embedded(io);
        let (host, port) = target.address.split_once(':').expect("host:port");
        let run = Command::new("memccapable").args(["-h", host, "-p", port, protocol]).output();
        let run = run.expect(MEMCCAPABLE);
        // It reports tests that pass on stdout, and those that fail on stderr.
        let outputs =
            [run.stdout, run.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let passes = |name: &&&str| outputs[0].contains(&format!("{name:<40}[pass]"));
        assert_eq!(refused.iter().find(passes), None, "{io:?}: {}", outputs.concat());
        let passed = outputs[0].matches("[pass]").count();
        assert_eq!(passed, 27 - refused.len(), "{io:?}: {}", outputs.concat());
    }
}

#[test]
fn memccapable_passes_in_text() {
    capable("-a", &["ascii delete", "ascii delete noreply"]);
}

#[test]
fn memccapable_passes_in_binary() {
    capable("-b", &[]);
}
