//! Gives the program its commit and how it is built, for `--version`.
//!
//! An export of the sources has the commit in `commit.txt`, and a crate that cargo has packaged in its own
//! file. In a checkout `commit.txt` has a placeholder, and git says which commit changed the engine last: so a
//! commit elsewhere builds nothing again.

use std::env;
use std::fs;
use std::process::Command;

const HASH_CHARACTERS: usize = 12;

fn main() {
    for path in ["commit.txt", "..", "../../Cargo.toml", "../../Cargo.lock"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let exported = include_str!("commit.txt").trim();
    let (commit, origin) = if !exported.starts_with('$') {
        (shortened(exported), "package")
    } else if let Some(packaged) = packaged_commit() {
        (shortened(&packaged), "package")
    } else {
        (checkout_commit().unwrap_or_else(|| "commit unknown".to_owned()), "checkout")
    };
    println!("cargo::rustc-env=CACHEMARK_COMMIT={commit}");
    println!("cargo::rustc-env=CACHEMARK_ORIGIN={origin}");
    println!("cargo::rustc-env=CACHEMARK_BUILD={}", build());
}

/// Such as `release, x86_64-unknown-linux-gnu, rustc 1.88.0`.
fn build() -> String {
    let of_cargo = |name| env::var(name).unwrap_or_default();
    let compiler = printed(&of_cargo("RUSTC"), &["--version"]).unwrap_or_default();
    let words: Vec<_> = compiler.split_whitespace().take(2).collect();
    format!("{}, {}, {}", of_cargo("PROFILE"), of_cargo("TARGET"), words.join(" "))
}

/// The commit in the file that `cargo package` adds: `"sha1": "…"`.
fn packaged_commit() -> Option<String> {
    let added = fs::read_to_string(".cargo_vcs_info.json").ok()?;
    added.split('"').skip_while(|part| *part != "sha1").nth(2).map(str::to_owned)
}

/// The last commit that changed the engine; None where there is no git or no repository.
fn checkout_commit() -> Option<String> {
    let commit = printed("git", &["log", "-1", "--format=%H", "--", "../.."])
        .filter(|text| !text.is_empty())?;
    let modified = printed("git", &["status", "--porcelain", "--", "../.."])
        .is_some_and(|text| !text.is_empty());
    Some(shortened(&commit) + if modified { " modified" } else { "" })
}

fn printed(program: &str, words: &[&str]) -> Option<String> {
    let ended = Command::new(program).args(words).output().ok()?;
    let text = String::from_utf8(ended.stdout).ok()?;
    ended.status.success().then(|| text.trim().to_owned())
}

fn shortened(commit: &str) -> String {
    commit.chars().take(HASH_CHARACTERS).collect()
}
