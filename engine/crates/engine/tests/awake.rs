//! `awake`, seen from outside: a thread on each CPU, of the policy that gives way, and gone in the end.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const SCHED_IDLE: &str = "5";

fn start(words: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cachemark-engine"));
    command.arg("awake").args(words);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().expect("our own program")
}

/// The CPUs that this test may use, as the kernel tells them.
fn usable(of: &str) -> String {
    let status = fs::read_to_string(format!("{of}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.expect("a set of CPUs").trim().to_owned()
}

/// Name, policy, niceness and CPUs of each thread whose name begins so.
fn threads(pid: u32) -> Vec<(String, String, String, String)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("a process");
    let seen = tasks.map(|task| {
        let path = task.expect("a thread").path();
        let stat = fs::read_to_string(path.join("stat")).expect("a thread");
        // Behind the name, which may hold anything: field 3 of proc(5) is the first.
        let (_, rest) = stat.rsplit_once(") ").expect("a name");
        let field = |number: usize| rest.split(' ').nth(number - 3).expect("a field").to_owned();
        let name = fs::read_to_string(path.join("comm")).expect("a name").trim().to_owned();
        (name, field(41), field(19), usable(path.to_str().expect("a path")))
    });
    seen.filter(|(name, ..)| name.starts_with("awake-")).collect()
}

#[test]
fn a_thread_gives_way_on_each_cpu_until_stdin_ends() {
    let first = usable("/proc/self");
    let first = first.split([',', '-']).next().expect("a CPU");
    let mut child = start(&["--cpus", first, "--stop-with-stdin"]);
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    assert!(line.contains("\"type\":\"awake\"") && line.contains(&format!("[{first}]")), "{line}");
    let expected = (format!("awake-{first}"), SCHED_IDLE.into(), "19".into(), first.to_owned());
    let found = threads(child.id());
    drop(child.stdin.take());
    let ended = child.wait().expect("it ends");
    assert_eq!((found, ended.code()), (vec![expected], Some(0)));
}

#[test]
fn what_cannot_be_had_is_said() {
    for (cpus, says) in [("1023", "CPU 1023: the kernel lets no thread"), ("x", "write 0-1")] {
        let ended = start(&["--cpus", cpus, "--stop-with-stdin"]).wait_with_output();
        let ended = ended.expect("it ends");
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.code() == Some(2) && told.contains(says), "{cpus}: {told}");
    }
}
