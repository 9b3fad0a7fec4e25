//! No circle of imports between the files of a crate, nor between its folders: whoever reads a file
//! can read first what it builds on, and never comes back to where the reading began.
//!
//! A file imports another one if any of its paths (`use` or inline, tests included) leads to an item
//! that is defined there. Paths are followed through re-exports, so that a parent module which only
//! declares and re-exports its children takes no part in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn no_crate_has_a_circle_of_imports() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates' folder");
    let mut found = Vec::new();
    let mut seen = 0;
    for entry in fs::read_dir(crates).expect("the crates' folder") {
        let path = entry.expect("a folder").path();
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
fn a_parent_with_code_of_its_own_can_be_in_a_circle() {
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

/// The source text of each file, by its path inside `src`.
type Sources = BTreeMap<PathBuf, String>;

fn crate_of(files: &[(&str, &str)]) -> Sources {
    files.iter().map(|(path, text)| (path.into(), (*text).to_owned())).collect()
}

fn sources(src: &Path) -> Sources {
    let mut found = Sources::new();
    let mut folders = vec![src.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            // A program's `main.rs` is a crate by itself.
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("main.rs")
            {
                let inside = path.strip_prefix(src).expect("below src").to_owned();
                found.insert(inside, fs::read_to_string(&path).expect("a source file"));
            }
        }
    }
    found
}

/// A module as its crate names it: the root has no segment.
type Module = Vec<String>;

/// What a file says of modules and paths.
#[derive(Default)]
struct File {
    path: PathBuf,
    /// By the name in scope: the path that was imported under it.
    imports: BTreeMap<String, Vec<String>>,
    /// All paths, each with the module, perhaps an inline one, in which it stands.
    paths: Vec<(Module, Vec<String>)>,
    /// It holds nothing but declarations of modules and imports.
    only_declares: bool,
}

/// The files that each file imports.
type Edges = BTreeMap<Module, BTreeSet<Module>>;

/// One description for each circle: the files on it.
fn circles(sources: &Sources) -> Vec<String> {
    let files = files(sources);
    let name = |module: &Module| files[module].path.display().to_string();
    circles_of(&edges(&files)).iter().map(|circle| described(circle, name)).collect()
}

/// One description for each circle between the modules right below the crate's root.
fn circles_of_folders(sources: &Sources) -> Vec<String> {
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

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Separator,
    Mark(char),
}

fn read(path: &Path, text: &str) -> (Module, File) {
    let mut module: Module =
        path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if module.last().is_some_and(|last| last == "mod" || last == "lib") {
        module.pop();
    }
    let tokens = tokens(text);
    let mut file = File { path: path.to_owned(), only_declares: true, ..File::default() };
    // Inline modules that are open, and other braces.
    let mut braces: Vec<Option<String>> = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        let inline = braces.iter().flatten().cloned();
        let at: Module = module.iter().cloned().chain(inline).collect();
        match (&tokens[i], tokens.get(i + 1), tokens.get(i + 2)) {
            (Token::Word(word), Some(Token::Word(name)), Some(Token::Mark('{')))
                if word == "mod" =>
            {
                braces.push(Some(name.clone()));
                file.only_declares = false;
                i += 3;
            }
            (Token::Word(word), Some(Token::Word(_)), Some(Token::Mark(';'))) if word == "mod" => {
                i += 3;
            }
            (Token::Word(word), ..) if word == "use" => {
                i = import(&tokens, i + 1, &[], &mut |path, name| {
                    if braces.is_empty() {
                        file.imports.insert(name.to_owned(), path.to_vec());
                    }
                    file.paths.push((at.clone(), path.to_vec()));
                });
            }
            (Token::Mark('#'), ..) => i = behind_attribute(&tokens, i + 1),
            (Token::Word(_), Some(Token::Separator), _) => {
                let (path, end) = chain(&tokens, i);
                file.paths.push((at, path));
                file.only_declares = false;
                i = end;
            }
            (Token::Word(word), ..) if word == "pub" => {
                let scoped = tokens.get(i + 1) == Some(&Token::Mark('('));
                i += if scoped { 4 } else { 1 };
            }
            (token, ..) => {
                match token {
                    Token::Mark('{') => braces.push(None),
                    Token::Mark('}') => drop(braces.pop()),
                    _ => {}
                }
                file.only_declares &= *token == Token::Mark(';');
                i += 1;
            }
        }
    }
    (module, file)
}

/// `a::b::c` from token `i` on, and where it ends.
fn chain(tokens: &[Token], mut i: usize) -> (Vec<String>, usize) {
    let mut path = Vec::new();
    while let Some(Token::Word(word)) = tokens.get(i) {
        path.push(word.clone());
        i += 1;
        if tokens.get(i) != Some(&Token::Separator) {
            break;
        }
        i += 1;
    }
    (path, i)
}

/// The paths of one `use`, with the names that they get; returns where it ends.
fn import(
    tokens: &[Token],
    i: usize,
    prefix: &[String],
    found: &mut impl FnMut(&[String], &str),
) -> usize {
    let (chain, mut i) = chain(tokens, i);
    let mut path = [prefix, &chain[..]].concat();
    match tokens.get(i) {
        Some(Token::Mark('{')) => {
            i += 1;
            while !matches!(tokens.get(i), Some(Token::Mark('}')) | None) {
                i = import(tokens, i, &path, found);
                i += usize::from(tokens.get(i) == Some(&Token::Mark(',')));
            }
            return i + 1;
        }
        Some(Token::Mark('*')) => {
            found(&path, "*");
            return i + 1;
        }
        _ => {}
    }
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let mut name = path.last().cloned().unwrap_or_default();
    // `a as b` is a chain that ends at `a`, and two words.
    if tokens.get(i) == Some(&Token::Word("as".to_owned())) {
        if let Some(Token::Word(alias)) = tokens.get(i + 1) {
            name.clone_from(alias);
        }
        i += 2;
    }
    found(&path, &name);
    i
}

fn behind_attribute(tokens: &[Token], mut i: usize) -> usize {
    i += usize::from(tokens.get(i) == Some(&Token::Mark('!')));
    let mut open = 0;
    while let Some(token) = tokens.get(i) {
        i += 1;
        match token {
            Token::Mark('[') => open += 1,
            Token::Mark(']') => open -= 1,
            _ => {}
        }
        if open == 0 {
            break;
        }
    }
    i
}

/// Words, `::` and other marks of a source text, without its comments and literals.
fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let mut found = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        match (at(i), at(i + 1)) {
            ('/', '/') => i += chars[i..].iter().take_while(|c| **c != '\n').count(),
            ('/', '*') => i = behind_comment(&chars, i),
            (':', ':') => {
                found.push(Token::Separator);
                i += 2;
            }
            ('"', _) => i = behind_string(&chars, i),
            ('r', '"' | '#') | ('b' | 'c', 'r') if raw_string(&chars, i).is_some() => {
                i = raw_string(&chars, i).expect("just seen");
            }
            // A character, or the mark of a lifetime.
            ('\'', '\\') => i += 3 + chars[i + 3..].iter().take_while(|c| **c != '\'').count() + 1,
            ('\'', _) if at(i + 2) == '\'' => i += 3,
            (c, _) if c.is_alphanumeric() || c == '_' => {
                let end = chars[i..].iter().take_while(|c| c.is_alphanumeric() || **c == '_');
                let end = i + end.count();
                found.push(Token::Word(chars[i..end].iter().collect()));
                i = end;
            }
            (c, _) => {
                if !c.is_whitespace() {
                    found.push(Token::Mark(c));
                }
                i += 1;
            }
        }
    }
    found
}

fn behind_comment(chars: &[char], mut i: usize) -> usize {
    let mut open = 0;
    while i < chars.len() {
        match (chars[i], chars.get(i + 1)) {
            ('/', Some('*')) => (open, i) = (open + 1, i + 2),
            ('*', Some('/')) => (open, i) = (open - 1, i + 2),
            _ => i += 1,
        }
        if open == 0 {
            break;
        }
    }
    i
}

fn behind_string(chars: &[char], mut i: usize) -> usize {
    i += 1;
    while i < chars.len() && chars[i] != '"' {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    i + 1
}

/// Where the raw string that begins at `i` ends, if one does.
fn raw_string(chars: &[char], i: usize) -> Option<usize> {
    let begin = i + usize::from(chars[i] != 'r') + 1;
    let hashes = chars[begin..].iter().take_while(|c| **c == '#').count();
    let mut end = begin + hashes;
    if chars.get(end) != Some(&'"') {
        return None;
    }
    loop {
        end += 1;
        let closes = chars[end..].iter().take(hashes + 1).copied();
        if closes.eq(std::iter::once('"').chain(std::iter::repeat_n('#', hashes))) {
            return Some(end + hashes + 1);
        }
        if end >= chars.len() {
            return Some(end);
        }
    }
}
