//! Tells the worker which versions it was built with: the lock file's libraries, and the compiler.

use std::env;
use std::fs;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let lock = fs::read_to_string("Cargo.lock").expect("a lock file");
    let field = |package: &str, name: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(&format!("{name} = \"")));
        line.unwrap_or("").trim_end_matches('"').to_owned()
    };
    for package in lock.split("[[package]]").skip(1) {
        let name = field(package, "name").to_uppercase().replace('-', "_");
        if ["ASYNC_MEMCACHED", "MEMCACHE", "MOKA"].contains(&name.as_str()) {
            println!("cargo::rustc-env={name}_VERSION={}", field(package, "version"));
        }
    }
    let compiler = Command::new(env::var("RUSTC").expect("set by cargo")).arg("--version").output();
    let version = String::from_utf8(compiler.expect("a compiler").stdout).expect("text");
    let version = version.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    println!("cargo::rustc-env=RUSTC_VERSION={version}");
}
