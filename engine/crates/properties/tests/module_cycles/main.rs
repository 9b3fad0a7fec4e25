//! No circle of imports between the files of a crate, nor between its folders: whoever reads a file
//! can read first what it builds on, and never comes back to where the reading began.
//!
//! A file imports another one if any of its paths (`use` or inline, tests included) leads to an item
//! that is defined there. Paths are followed through re-exports, so that a parent module which only
//! declares and re-exports its children takes no part in a circle.

mod graph;
mod parse;

use std::fs;
use std::path::Path;

use graph::{circles, circles_of_folders};
use parse::Sources;

#[test]
fn no_crate_has_a_circle_of_imports() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates' folder");
    let mut found = Vec::new();
    let mut seen = 0;
    let worker = crates.join("../../workers/rust");
    let entries = fs::read_dir(crates).expect("the crates' folder");
    for path in entries.map(|entry| entry.expect("a folder").path()).chain([worker]) {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let sources = sources(&path.join("src"));
        seen += sources.len();
        let mut circles = circles(&sources);
        circles.extend(circles_of_folders(&sources));
        found.extend(circles.into_iter().map(|circle| format!("{name}: {circle}")));
    }
    assert!(seen > 100, "only {seen} files were found");
    assert!(found.is_empty(), "circles of imports:\n{}", found.join("\n"));
}

#[test]
fn a_circle_is_found() {
    let two = crate_of(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        ("b.rs", "pub struct B; impl B { fn a(&self) -> crate::a::A { todo!() } }"),
    ]);
    assert_eq!(circles(&two), ["a.rs → b.rs → a.rs"]);
}

#[test]
fn a_circle_through_groups_super_and_tests_is_found() {
    let three = crate_of(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a/mod.rs", "mod x; pub struct A;"),
        ("a/x.rs", "use crate::{b::{self}, a::A}; fn f() { b::g() }"),
        ("b.rs", "#[cfg(test)] mod tests { use super::super::c::h; }"),
        ("c.rs", "use super::a::A; use crate::a::x::f as g; fn h() { g() }"),
    ]);
    assert_eq!(circles(&three), ["a/x.rs → b.rs → c.rs → a/x.rs"]);
}

#[test]
fn a_parent_with_its_own_code_can_close_a_circle() {
    let parent = crate_of(&[
        ("lib.rs", "mod a;"),
        ("a.rs", "mod x; pub use x::X; pub struct A;"),
        ("a/x.rs", "use super::A; pub struct X(A);"),
    ]);
    assert_eq!(circles(&parent), ["a.rs → a/x.rs → a.rs"]);
}

#[test]
fn a_parent_that_only_declares_and_reexports_is_no_circle() {
    let parent = crate_of(&[
        ("lib.rs", "//! Docs. mod b;\n#[cfg(unix)] mod a; pub use a::{X, Y as Z};"),
        ("a/mod.rs", "mod x; mod y; pub use x::X; pub(crate) use y::Y;"),
        ("a/x.rs", "use super::Y; // use crate::Y\npub struct X(Y, &'static str);"),
        ("a/y.rs", "/* use super::X; */ const T: &str = \"crate::a::X\"; pub struct Y;"),
    ]);
    assert_eq!(circles(&parent), [""; 0]);
    // Through the parent, two children do import each other.
    let mut circular = parent;
    circular.insert("a/y.rs".into(), "use crate::X; pub struct Y(Box<X>);".to_owned());
    assert_eq!(circles(&circular), ["a/x.rs → a/y.rs → a/x.rs"]);
}

#[test]
fn a_circle_of_folders_is_found() {
    let two = crate_of(&[
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "mod low; mod high;"),
        ("a/low.rs", "pub fn f() {}"),
        ("a/high.rs", "use crate::b::g; fn h() { g() }"),
        ("b.rs", "pub fn g() { crate::a::low::f() }"),
    ]);
    assert_eq!(circles(&two), [""; 0]);
    assert_eq!(circles_of_folders(&two), ["a → b → a"]);
}

fn crate_of(files: &[(&str, &str)]) -> Sources {
    files.iter().map(|(path, text)| (path.into(), (*text).to_owned())).collect()
}

fn sources(src: &Path) -> Sources {
    let mut found = Sources::new();
    let mut folders = vec![src.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            // A `main.rs` beside a `lib.rs` is a crate by itself.
            let other_crate = path.ends_with("main.rs") && src.join("lib.rs").exists();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") && !other_crate {
                let inside = path.strip_prefix(src).expect("below src").to_owned();
                found.insert(inside, fs::read_to_string(&path).expect("a source file"));
            }
        }
    }
    found
}
