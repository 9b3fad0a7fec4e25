//! `awake` as a process: a thread with the policy SCHED_IDLE on each CPU, until stdin ends.

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

/// The CPUs that a process or a thread may use, according to the kernel.
fn usable(of: &str) -> String {
    let status = fs::read_to_string(format!("{of}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.expect("a set of CPUs").trim().to_owned()
}

/// Name, policy, nice value and CPUs of each thread of `awake`.
fn threads(pid: u32) -> Vec<(String, String, String, String)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("a process");
    let seen = tasks.map(|task| {
        let path = task.expect("a thread").path();
        let stat = fs::read_to_string(path.join("stat")).expect("a thread");
        // The name may contain anything. The first field behind it is field 3 of proc(5).
        let (_, rest) = stat.rsplit_once(") ").expect("a name");
        let field = |number: usize| rest.split(' ').nth(number - 3).expect("a field").to_owned();
        let name = fs::read_to_string(path.join("comm")).expect("a name").trim().to_owned();
        (name, field(41), field(19), usable(path.to_str().expect("a path")))
    });
    seen.filter(|(name, ..)| name.starts_with("awake-")).collect()
}

#[test]
fn an_idle_thread_runs_on_each_cpu_until_stdin_ends() {
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
fn each_refusal_names_the_cpu() {
    for (cpus, says) in [("1023", "CPU 1023: the kernel does not let"), ("x", "write 0-1")] {
        let ended = start(&["--cpus", cpus, "--stop-with-stdin"]).wait_with_output();
        let ended = ended.expect("it ends");
        let error = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.code() == Some(2) && error.contains(says), "{cpus}: {error}");
    }
}
