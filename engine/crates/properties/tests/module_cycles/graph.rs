//! The graph of a crate's imports, and its circles.

use std::collections::{BTreeMap, BTreeSet};

use crate::parse::{File, Module, Sources, read};

/// The files that each file imports.
type Edges = BTreeMap<Module, BTreeSet<Module>>;

/// One description for each circle: the files on it.
pub fn circles(sources: &Sources) -> Vec<String> {
    let files = files(sources);
    let name = |module: &Module| files[module].path.display().to_string();
    circles_of(&edges(&files)).iter().map(|circle| described(circle, name)).collect()
}

/// One description for each circle between the modules right below the crate's root.
pub fn circles_of_folders(sources: &Sources) -> Vec<String> {
    let folder = |module: &Module| module[..1.min(module.len())].to_vec();
    let mut between = Edges::new();
    for (from, targets) in edges(&files(sources)) {
        let from = folder(&from);
        let targets = targets.iter().map(folder).filter(|to| *to != from && !to.is_empty());
        let targets: BTreeSet<Module> = targets.collect();
        between.entry(from).or_default().extend(targets);
    }
    between.remove(&Module::new());
    circles_of(&between)
        .iter()
        .map(|circle| described(circle, |module| module.join("::")))
        .collect()
}

fn files(sources: &Sources) -> BTreeMap<Module, File> {
    sources.iter().map(|(path, text)| read(path, text)).collect()
}

fn edges(files: &BTreeMap<Module, File>) -> Edges {
    files.iter().map(|(module, file)| (module.clone(), imported(module, file, files))).collect()
}

fn described(circle: &[Module], name: impl Fn(&Module) -> String) -> String {
    let names: Vec<String> = circle.iter().chain(circle.first()).map(name).collect();
    names.join(" → ")
}

/// The modules on each circle, found once.
fn circles_of(edges: &Edges) -> Vec<Vec<Module>> {
    let mut found = Vec::new();
    let mut on_a_circle = BTreeSet::new();
    for module in edges.keys() {
        if on_a_circle.contains(module) {
            continue;
        }
        if let Some(circle) = way_back(module, edges) {
            on_a_circle.extend(circle.iter().cloned());
            found.push(circle);
        }
    }
    found
}

/// The files on the shortest way from a file back to itself, that file first.
fn way_back(start: &Module, edges: &Edges) -> Option<Vec<Module>> {
    let mut came_from: BTreeMap<&Module, &Module> = BTreeMap::new();
    let mut front = vec![start];
    while !front.is_empty() {
        let mut next = Vec::new();
        for at in front {
            for to in &edges[at] {
                if to == start {
                    let mut way = vec![at.clone()];
                    while way[way.len() - 1] != *start {
                        way.push(came_from[&way[way.len() - 1]].clone());
                    }
                    way.reverse();
                    return Some(way);
                }
                if !came_from.contains_key(to) {
                    came_from.insert(to, at);
                    next.push(to);
                }
            }
        }
        front = next;
    }
    None
}

/// The files that a file imports.
fn imported(module: &Module, file: &File, files: &BTreeMap<Module, File>) -> BTreeSet<Module> {
    if file.only_declares {
        return BTreeSet::new();
    }
    let targets = file.paths.iter().filter_map(|(at, path)| {
        let path = absolute(module, at, path, files)?;
        Some(defined_in(&path, files))
    });
    targets.filter(|target| target != module).collect()
}

/// A path from the crate's root on; `None` if it leads out of the crate.
fn absolute(
    file: &Module,
    at: &Module,
    path: &[String],
    files: &BTreeMap<Module, File>,
) -> Option<Vec<String>> {
    let (first, rest) = path.split_first()?;
    let mut base = match first.as_str() {
        "crate" => Module::new(),
        "self" => at.clone(),
        "super" => {
            let up = at.len().checked_sub(1)?;
            return match rest.first() {
                Some(next) if next == "super" => absolute(file, &at[..up].to_vec(), rest, files),
                _ => Some([&at[..up], rest].concat()),
            };
        }
        name => {
            let child = [file.as_slice(), &[name.to_owned()]].concat();
            match files[file].imports.get(name) {
                _ if files.contains_key(&child) => child,
                Some(import) if import.first().is_some_and(|first| first != name) => {
                    absolute(file, file, import, files)?
                }
                _ => return None,
            }
        }
    };
    base.extend_from_slice(rest);
    Some(base)
}

/// The file that defines what a path names, through re-exports.
fn defined_in(path: &[String], files: &BTreeMap<Module, File>) -> Module {
    let mut module = Module::new();
    let mut rest = path.to_vec();
    // More re-exports of re-exports than this are a circle of their own.
    for _ in 0..32 {
        let Some(name) = rest.first() else { break };
        let child = [module.as_slice(), std::slice::from_ref(name)].concat();
        if files.contains_key(&child) {
            module = child;
            rest.remove(0);
            continue;
        }
        let import = files[&module].imports.get(name);
        let Some(target) = import.and_then(|path| absolute(&module, &module, path, files)) else {
            break;
        };
        rest = [&target[..], &rest[1..]].concat();
        module.clear();
    }
    module
}
