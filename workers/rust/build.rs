//! Finds the client files, and gives the worker the versions of its dependencies, from the lock file,
//! and of the compiler.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    println!("cargo::rerun-if-changed=src/clients");
    clients();
    versions();
    let compiler = Command::new(env::var("RUSTC").expect("set by cargo")).arg("--version").output();
    let version = String::from_utf8(compiler.expect("a compiler").stdout).expect("text");
    let version = version.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    println!("cargo::rustc-env=RUSTC_VERSION={version}");
}

/// A module for each file of src/clients, and a table of their names.
fn clients() {
    let folder = env::var("CARGO_MANIFEST_DIR").expect("set by cargo") + "/src/clients";
    let files = fs::read_dir(&folder).expect("src/clients");
    let mut modules: Vec<_> = files
        .filter_map(|file| file.ok()?.file_name().to_str()?.strip_suffix(".rs").map(str::to_owned))
        .filter(|module| module != "mod")
        .collect();
    modules.sort();
    let mut code = String::new();
    for module in &modules {
        writeln!(code, "#[path = {:?}]\npub mod {module};", format!("{folder}/{module}.rs"))
            .expect("room");
    }
    let names: Vec<_> = modules.iter().map(|module| module.replace('_', "-")).collect();
    writeln!(code, "pub const NAMES: &[&str] = &{names:?};").expect("room");
    code += "pub fn find(name: &str) -> Option<(&'static str, Serve)> {\n    Some(match name {\n";
    for (module, name) in modules.iter().zip(&names) {
        let type_ = camel_case(module);
        writeln!(code, "{name:?} => ({name:?}, Worker::<{module}::{type_}>::serve as Serve),")
            .expect("room");
    }
    code += "_ => return None,\n    })\n}\n";
    let out = env::var("OUT_DIR").expect("set by cargo");
    fs::write(Path::new(&out).join("clients.rs"), code).expect("OUT_DIR can be written");
}

fn camel_case(module: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    module.split('_').map(capital).collect()
}

/// `NAME_VERSION` for each direct dependency.
fn versions() {
    let lock = fs::read_to_string("Cargo.lock").expect("a lock file");
    let field = |package: &str, name: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(&format!("{name} = \"")));
        line.unwrap_or("").trim_end_matches('"').to_owned()
    };
    let packages: Vec<_> = lock.split("[[package]]").skip(1).collect();
    let own =
        packages.iter().find(|package| field(package, "name") == "worker").expect("the worker");
    let needed: Vec<_> = own.split('"').collect();
    for package in &packages {
        let (name, version) = (field(package, "name"), field(package, "version"));
        // With several versions of a crate, the lock file names the version beside the crate.
        if needed.contains(&name.as_str()) || needed.contains(&format!("{name} {version}").as_str())
        {
            let variable = name.to_uppercase().replace('-', "_");
            println!("cargo::rustc-env={variable}_VERSION={version}");
        }
    }
}
