//! The verb `memcached`: memcached's command line. What is refused, memcached itself refuses with the same status
//! and the same words.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longer than any step takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// memcached's command: that of this engine, and memcached itself.
fn ours() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cachemark-engine"));
    command.arg("memcached");
    command
}

fn memcached() -> Command {
    Command::new("memcached")
}

/// Options, the exit status, and a part of the message.
const REFUSED: [(&[&str], i32, &str); 34] = [
    (&["-c", "0"], 1, "Maximum connections must be greater than 0"),
    (&["--conn-limit=-5"], 1, "Maximum connections must be greater than 0"),
    (&["-t0"], 1, "Number of threads must be greater than 0"),
    (&["-R", "x"], 1, "Number of requests per event must be greater than 0"),
    (&["-f", "1"], 1, "Factor must be greater than 1"),
    (&["-n", "0"], 1, "Chunk size must be greater than 0"),
    (&["-D", ""], 1, "No delimiter specified"),
    (&["-B", "foo"], 64, "Invalid value for binding protocol: foo"),
    (&["-I", "1000"], 64, "Item max size cannot be less than 1024 bytes."),
    (&["-I", "40m"], 64, "Cannot set item size limit higher than 1/2 of memory max."),
    (&["-m", "9000", "-I", "1025m"], 64, "Cannot set item size limit higher than a gigabyte."),
    (&["-I", "1537k"], 64, "must be evenly divisible by slab_chunk_max"),
    (&["-p", "70000"], 64, "ERROR: Invalid port number 70000."),
    (&["-B", "binary", "-Y", "/dev/null"], 64, "You cannot allow the BINARY protocol"),
    (&["-o", "hashpower"], 1, "Missing numeric argument for hashpower"),
    (&["-o", "slab_automove=7"], 1, "slab_automove must be between 0 and 2"),
    (&["-o", "slab_automove_window=1"], 1, "slab_automove_window must be > 2"),
    (&["-o", "hot_lru_pct=90"], 1, "hot_lru_pct must be > 1 and < 80"),
    (&["-o", "hot_lru_pct=50,warm_lru_pct=60"], 64, "cannot be more than 80% combined"),
    (&["-o", "hash_algorithm=foo"], 1, "Unknown hash_algorithm option"),
    (&["-o", "tail_repair_time=1"], 1, "Cannot set tail_repair_time to less than 10 seconds"),
    (&["-o", "no_lru_maintainer,temporary_ttl=5"], 64, "requires lru_maintainer"),
    (&["-o", "hashpower=11"], 1, "Initial hashtable multiplier of 11 is too low"),
    (&["-o", "hashpower=33"], 1, "Initial hashtable multiplier of 33 is too high"),
    (&["-o", "slab_sizes=100-x"], 64, "is out of valid range"),
    (&["-o", "slab_sizes=200-100"], 64, "slab size 100 cannot be lower than or equal"),
    (&["-o", "slab_sizes=100-105"], 64, "slab size 105 must be at least 8 bytes larger"),
    (&["-o", "modern,,maxconns_fast"], 1, "Illegal suboption \"\""),
    (&["-o", "foo=1"], 1, "Illegal suboption \"foo=1\""),
    (&["-u", "root", "-l", "127.0.0.1:abc"], 71, "Invalid port number: \"abc\""),
    (&["-u", "root", "-p", "-5"], 71, "failed to listen on TCP port -5"),
    (&["-Q"], 1, "invalid option -- 'Q'"),
    (&["--foo"], 1, "unrecognized option '--foo'"),
    (&["-p"], 1, "option requires an argument -- 'p'"),
];

/// The same for memcached 1.6.45. Version 1.6.18 crashes on the first two, and takes the third as bytes. memcached
/// may be built without TLS.
const REFUSED_SINCE: [(&[&str], i32, &str); 10] = [
    (&["-o", "slab_chunk_max=x"], 1, "could not parse argument to slab_chunk_max"),
    (&["-o", "slab_chunk_max=0"], 1, "slab_chunk_max must be >= 0"),
    (&["-o", "slab_chunk_max=1025"], 1, "slab_chunk_max must be specified in kilobytes."),
    (&["-o", "ssl_verify_mode"], 1, "Missing ssl_verify_mode argument"),
    (&["-o", "ssl_verify_mode=x"], 1, "could not parse argument to ssl_verify_mode"),
    (&["-o", "ssl_verify_mode=9"], 1, "Invalid ssl_verify_mode. Use help to see valid options."),
    (&["-l", "tag_x:127.0.0.1"], 71, "Invalid tag in socket config: \"_x:127.0.0.1\""),
    (&["-l", "tag_ninebytes_:127.0.0.1"], 71, "must be between 1 and 8 characters"),
    (&["-l", "proto[ascii]:127.0.0.1"], 64, "all listeners speak the protocol of -B"),
    (&["-l", "notls:127.0.0.1"], 71, "'notls' option is valid only when SSL is enabled"),
];

/// Options that memcached accepts, and this server would not keep.
const UNKEPT: [(&[&str], i32, &str); 4] = [
    (&["-N", "2"], 1, "-N: event loops take connections in turn here; leave -N out"),
    (&["-o", "read_buf_mem_limit=1"], 1, "leave it out, and lower -c"),
    (&["-o", "drop_privileges"], 1, "SystemCallFilter= of systemd"),
    (&["-o", "sock_cookie_id=5"], 1, "this server marks no sockets"),
];

#[test]
fn options_whose_promise_is_not_kept_are_refused() {
    UNKEPT.iter().for_each(|refusal| check_refused("ours", ours(), refusal));
}

#[test]
fn refusals_are_memcacheds() {
    for (program, command) in [("ours", ours as fn() -> Command), ("memcached", memcached)] {
        REFUSED.iter().for_each(|refusal| check_refused(program, command(), refusal));
    }
    REFUSED_SINCE.iter().for_each(|refusal| check_refused("ours", ours(), refusal));
}

fn check_refused(
    program: &str,
    mut command: Command,
    (arguments, status, message): &(&[&str], i32, &str),
) {
    let run = command.args(*arguments).stdin(Stdio::null()).output().expect("a program");
    let error = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(*status), "{program} {arguments:?}: {error}");
    assert!(error.contains(message), "{program} {arguments:?}: {error}");
}

#[test]
fn help_and_version_are_printed() {
    for (option, expected) in [
        ("-h", "-s, --unix-socket=<file>"),
        ("--help", "idle_timeout"),
        ("--hel", "--conn-limit=<num>"),
        ("-V", "memcached 1.6.45-cachemark-"),
        ("-i", "Apache License 2.0"),
    ] {
        let run = ours().arg(option).stdin(Stdio::null()).output().expect("the engine");
        let text = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && text.contains(expected), "{option}: {text}");
    }
}

/// A server that is killed when this value is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already; it must be reaped in any case.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn wait(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().expect("a child") {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Start a server with these options. A user is named in case the tests are root's.
fn start(folder: &Path, options: &[&str]) -> Running {
    let child = ours()
        .args(["-u", "root"])
        .args(options)
        .env("MEMCACHED_PORT_FILENAME", folder.join("ports"))
        .stdin(Stdio::null())
        .stderr(std::fs::File::create(folder.join("stderr")).expect("a file"))
        .spawn();
    Running(child.expect("the engine"))
}

/// The content of a file, once it is there.
fn read_soon(path: &Path) -> String {
    let began = Instant::now();
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text,
            _ => assert!(began.elapsed() < PATIENCE, "no {}", path.display()),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn connect(folder: &Path) -> TcpStream {
    let ports = read_soon(&folder.join("ports"));
    let port = ports.lines().find_map(|line| line.strip_prefix("TCP INET: ")).expect("a port");
    let stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("a server");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

fn ask(mut stream: impl Read + Write, request: &str, last: &str) -> String {
    stream.write_all(request.as_bytes()).expect("a server that reads");
    let (mut reply, mut room) = (String::new(), [0; 4096]);
    while !reply.ends_with(last) {
        let bytes = stream.read(&mut room).expect("a server that answers");
        assert!(bytes > 0, "{reply}");
        reply.push_str(&String::from_utf8_lossy(&room[..bytes]));
    }
    reply
}

#[test]
fn options_take_effect_and_shutdown_ends_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let pid_file = folder.path().join("pid");
    let options = "-l 127.0.0.1 -p -1 -U 0 -A -F -W -M -m 32 -c 100 -t 2 -I 2m -v -f 1.5 \
                   -b 77 -L -o idle_timeout=500,no_lru_crawler,modern,hashpower=14,tail_repair_time=30 -P";
    let options: Vec<&str> = options.split(' ').collect();
    let pid_path = pid_file.to_str().expect("text");
    let mut server = start(folder.path(), &[&options[..], &[pid_path]].concat());
    let stream = connect(folder.path());
    let settings = ask(&stream, "stats settings\r\n", "END\r\n");
    for expected in [
        "maxbytes 33554432",
        "maxconns 100",
        "num_threads 2",
        "item_size_max 2097152",
        "verbosity 1",
        "growth_factor 1.50",
        "tcp_backlog 77",
        "evictions off",
        "flush_enabled no",
        "shutdown_command yes",
        "idle_timeout 500",
        "lru_crawler no",
    ] {
        assert!(settings.contains(&format!("STAT {expected}\r\n")), "{expected}: {settings}");
    }
    // The second size is 96 times the factor, in steps of 8.
    let long = "x".repeat(60);
    let sized = ask(&stream, &format!("set a 0 0 60\r\n{long}\r\nstats slabs\r\n"), "END\r\n");
    assert!(sized.contains("STAT 2:chunk_size 144\r\n"), "{sized}");
    let table = ask(&stream, "stats\r\n", "END\r\n");
    assert!(table.contains("STAT hash_power_level 14\r\n"), "{table}");
    let replies = ask(&stream, "flush_all\r\nwatch\r\nshutdown now\r\n", "mode\r\n");
    let expected = "CLIENT_ERROR flush_all not allowed\r\nCLIENT_ERROR watch commands not allowed\r\n\
                    CLIENT_ERROR invalid shutdown mode\r\n";
    assert_eq!(replies, expected);
    assert_eq!(read_soon(&pid_file).trim(), server.0.id().to_string());
    let mut stream = stream;
    stream.write_all(b"shutdown\r\n").expect("a server that reads");
    assert!(server.wait().success());
    let said = std::fs::read_to_string(folder.path().join("stderr")).expect("a file");
    assert_eq!(said, "cachemark-engine: without effect here: -o tail_repair_time\n");
}

#[test]
fn a_unix_socket_excludes_the_network_and_ends_by_signals() {
    for (signal, said) in [("TERM", ""), ("USR1", "cachemark-engine: Gracefully stopping\n")] {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("socket");
        let path = socket.to_str().expect("text").to_owned();
        let mut server = start(folder.path(), &["-s", &path, "-a", "770"]);
        let began = Instant::now();
        let stream = loop {
            match UnixStream::connect(&socket) {
                Ok(stream) => break stream,
                Err(error) => assert!(began.elapsed() < PATIENCE, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        assert_eq!(ask(&stream, "mn\r\n", "\n"), "MN\r\n");
        let settings = ask(&stream, "stats settings\r\n", "END\r\n");
        assert!(settings.contains("STAT umask 770\r\n") && settings.contains("STAT tcpport 0\r\n"));
        let pid = server.0.id().to_string();
        Command::new("kill").args(["-s", signal, &pid]).status().expect("kill");
        assert!(server.wait().success());
        let text = std::fs::read_to_string(folder.path().join("stderr")).expect("a file");
        assert_eq!(text, said);
    }
}

#[test]
fn a_signal_rereads_the_users() {
    let folder = tempfile::tempdir().expect("a folder");
    let users = folder.path().join("users");
    std::fs::write(&users, "ann:old\n").expect("a file");
    let path = users.to_str().expect("text").to_owned();
    let server = start(folder.path(), &["-l", "127.0.0.1", "-p", "-1", "-Y", &path]);
    let log_in = |user: &str| {
        let request = format!("set x 0 0 7\r\n{user}\r\n");
        ask(connect(folder.path()), &request, "\r\n")
    };
    assert_eq!(log_in("ann old"), "STORED\r\n");
    std::fs::write(&users, "ann:new\n").expect("a file");
    let pid = server.0.id().to_string();
    Command::new("kill").args(["-s", "HUP", &pid]).status().expect("kill");
    let began = Instant::now();
    while log_in("ann new") != "STORED\r\n" {
        assert!(began.elapsed() < PATIENCE, "the users stay as they were");
    }
    assert_eq!(log_in("ann old"), "CLIENT_ERROR authentication failure\r\n");
}

#[test]
fn a_daemon_goes_to_the_background() {
    let folder = tempfile::tempdir().expect("a folder");
    let pid_file = folder.path().join("pid");
    let path = pid_file.to_str().expect("text").to_owned();
    let mut begun = start(folder.path(), &["-d", "-A", "-l", "127.0.0.1", "-p", "-1", "-P", &path]);
    assert!(begun.wait().success());
    let pid = read_soon(&pid_file);
    let stream = connect(folder.path());
    let stats = ask(&stream, "stats\r\n", "END\r\n");
    assert!(stats.contains(&format!("STAT pid {}\r\n", pid.trim())), "{stats}");
    let mut stream = stream;
    stream.write_all(b"shutdown graceful\r\n").expect("a server that reads");
    let began = Instant::now();
    // It removes its file at the end.
    while pid_file.exists() {
        assert!(began.elapsed() < PATIENCE, "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Send a signal and wait for a good end.
fn end(server: &mut Running, signal: &str) {
    let pid = server.0.id().to_string();
    Command::new("kill").args(["-s", signal, &pid]).status().expect("kill");
    assert!(server.wait().success());
}

#[test]
fn items_outlive_a_graceful_restart_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let items = folder.path().join("items");
    let path = items.to_str().expect("text").to_owned();
    let options = ["-l", "127.0.0.1", "-p", "-1", "-U", "0", "-m", "40", "-e", &path];
    let begin = |options: &[&str]| {
        let _ = std::fs::remove_file(folder.path().join("ports"));
        let server = start(folder.path(), options);
        (server, connect(folder.path()))
    };
    let long = "x".repeat(300_000);
    let get = "get a long\r\n";
    let all = format!("VALUE a 7 2\r\nhi\r\nVALUE long 0 300000\r\n{long}\r\nEND\r\n");

    let (mut server, stream) = begin(&options);
    let settings = ask(&stream, "stats settings\r\n", "END\r\n");
    assert!(settings.contains(&format!("STAT memory_file {path}\r\n")), "{settings}");
    let sets = format!("set a 7 0 2\r\nhi\r\nset long 0 0 300000\r\n{long}\r\n");
    assert_eq!(ask(&stream, &sets, "STORED\r\nSTORED\r\n").len(), 16);
    let cas = ask(&stream, "gets a\r\n", "END\r\n");
    // An upload that does not end.
    (&stream).write_all(b"set half 0 0 200000\r\nabc").expect("a server that reads");
    end(&mut server, "USR1");

    let (mut server, stream) = begin(&options);
    assert_eq!(ask(&stream, get, "END\r\n"), all);
    assert_eq!(ask(&stream, "gets a\r\n", "END\r\n"), cas);
    assert_eq!(ask(&stream, "get half\r\n", "END\r\n"), "END\r\n");
    let counted = ask(&stream, "stats items\r\n", "END\r\n");
    assert!(counted.contains("STAT items:1:number 1\r\n"), "{counted}");
    end(&mut server, "USR1");

    // A server with other options has no use for them.
    let (mut server, stream) = begin(&[&options[..], &["-C"]].concat());
    assert_eq!(ask(&stream, get, "END\r\n"), "END\r\n");
    let said = std::fs::read_to_string(folder.path().join("stderr")).expect("a file");
    assert!(said.contains("starting empty"), "{said}");
    assert_eq!(ask(&stream, "set b 0 0 1\r\nx\r\n", "STORED\r\n").len(), 8);
    // Another server must not use the file meanwhile.
    let run = ours().args(["-u", "root"]).args(options).stdin(Stdio::null()).output();
    let error = String::from_utf8_lossy(&run.expect("a program").stderr).into_owned();
    assert!(error.contains("another process has its items there"), "{error}");
    end(&mut server, "TERM");

    let (mut server, stream) = begin(&options);
    assert_eq!(ask(&stream, "get b\r\n", "END\r\n"), "END\r\n", "it did not end gracefully");
    end(&mut server, "USR1");
    std::fs::write(format!("{path}.meta"), b"something \xff else\n").expect("a file");
    let run = ours().args(["-u", "root"]).args(options).stdin(Stdio::null()).output();
    let run = run.expect("a program");
    let error = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(!run.status.success() && error.contains("not a file of this server"), "{error}");
}
