//! libmemcached's `memccapable`, which runs 27 tests of each protocol against a server.

mod targets;

use std::process::Command;

use cachemark_server::IoMode;

const MEMCCAPABLE: &str = "memccapable on PATH: apt-get install libmemcached-tools";

fn capable(protocol: &str) {
    for io in IoMode::available() {
        let (_server, target) = targets::embedded(io);
        let (host, port) = target.address.split_once(':').expect("host:port");
        let run = Command::new("memccapable").args(["-h", host, "-p", port, protocol]).output();
        let run = run.expect(MEMCCAPABLE);
        // It reports tests that pass on stdout, and those that fail on stderr.
        let outputs =
            [run.stdout, run.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(run.status.success(), "{io:?}: {}", outputs.concat());
        assert_eq!(outputs[0].matches("[pass]").count(), 27, "{io:?}: {}", outputs.concat());
    }
}

#[test]
fn memccapable_passes_in_text() {
    capable("-a");
}

#[test]
fn memccapable_passes_in_binary() {
    capable("-b");
}
