//! Every property holds for the seeds of its fuzz target, and for the inputs in fuzz/regressions that once failed.

use std::path::Path;

use cachemark_properties::TARGETS;

fn fuzz(part: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(part)
}

#[test]
fn properties_hold_for_the_seeds() {
    for target in TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{}", target.name);
        seeds.iter().for_each(|seed| (target.check)(seed));
    }
}

#[test]
fn properties_hold_for_earlier_findings() {
    for target in TARGETS {
        let Ok(found) = std::fs::read_dir(fuzz("regressions").join(target.name)) else { continue };
        for entry in found {
            let path = entry.expect("an entry of a folder").path();
            println!("{}", path.display());
            (target.check)(&std::fs::read(path).expect("a file"));
        }
    }
}

#[cfg(feature = "options")]
#[test]
fn every_target_is_fuzzed() {
    let manifest = std::fs::read_to_string(fuzz("Cargo.toml")).expect("the fuzz targets' manifest");
    let manifest: toml::Table = manifest.parse().expect("a manifest");
    let bins = manifest["bin"].as_array().expect("programs");
    let mut listed: Vec<&str> = bins.iter().filter_map(|bin| bin["name"].as_str()).collect();
    let mut known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    listed.sort_unstable();
    known.sort_unstable();
    assert_eq!(listed, known);
}
