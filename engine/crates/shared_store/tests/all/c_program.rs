//! A C program uses the library through its header, under AddressSanitizer and UBSan.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use cachemark_store::NamedStore;

/// Removes the store if the program did not.
struct Destroyed(String);

impl Drop for Destroyed {
    fn drop(&mut self) {
        let _ = NamedStore::destroy(&self.0);
    }
}

/// The folder of the library that this test was built with.
fn library_folder() -> PathBuf {
    let test = env::current_exe().expect("this test");
    let folder = test.parent().expect("a folder").to_owned();
    assert!(folder.join("libcachemark_store.so").exists(), "the library beside {}", test.display());
    folder
}

fn compile(program: &Path) {
    let (own, library) = (Path::new(env!("CARGO_MANIFEST_DIR")), library_folder());
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]);
    cc.arg("-I").arg(own.join("include")).arg(own.join("tests/program.c")).arg("-o").arg(program);
    cc.arg("-L").arg(&library).arg("-lcachemark_store");
    cc.arg(format!("-Wl,-rpath,{}", library.display()));
    let ended = cc.output().expect("cc: a C compiler, which Rust needs anyway");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn a_c_program_uses_every_function() {
    let folder = tempfile::tempdir().expect("a folder");
    let (program, dump) = (folder.path().join("program"), folder.path().join("dump"));
    compile(&program);
    let store = Destroyed(format!("test-{}", process::id()));
    let ended = Command::new(&program).arg(&store.0).arg(&dump).output().expect("the program");
    let said = [ended.stdout, ended.stderr].concat();
    assert!(ended.status.success(), "{}: {}", ended.status, String::from_utf8_lossy(&said));
    let text = std::fs::read_to_string(&dump).expect("the dump");
    let line = r#"{"key":"a","flags":7,"expires_s":0,"bytes":3,"value":"one"}"#;
    assert!(text.lines().any(|one| one == line), "{text}");
    assert!(NamedStore::open(&store.0).is_err(), "destroyed");
}
