//! Options with which `serve` refuses to start: each error is one line that names the option and the remedy.

use std::process::{Command, Stdio};

const REFUSED: [(&[&str], &str); 14] = [
    (&["--memory", "64"], "write the unit, as in 64m"),
    (&["--memory", "100000g"], "give the store less memory"),
    (&["--hash-power", "24"], "give less of it, or more memory"),
    (&["--hash-power", "9"], "between 10 and 32"),
    (&["-I", "1023"], "from 1k to 1g"),
    (&["-I", "2g"], "from 1k to 1g"),
    (&["--threads", "1025"], "at most 1024"),
    (&["--max-connections", "0"], "at least 1"),
    (&["--udp", "127.0.0.1"], "write host:port"),
    (&["--unix", "/nowhere/at/all"], "make its folder"),
    (&["--auth-file", "/nowhere"], "--auth-file /nowhere"),
    (&["--tls-cert", "/nowhere", "--tls-key", "/nowhere"], "TLS: /nowhere"),
    (&["--traffic-log", "/tmp/a"], "add --io blocking"),
    (
        &["--io", "blocking", "--traffic-log", "/nowhere/at/all"],
        "--traffic-log /nowhere/at/all: cannot be written",
    ),
];

#[test]
fn each_refusal_names_the_option_and_the_remedy() {
    for (arguments, expected) in REFUSED {
        let run = Command::new(env!("CARGO_BIN_EXE_cachemark-engine"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("the engine");
        let error = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(run.stdout.is_empty() && error.contains(expected), "{arguments:?}: {error}");
    }
}
