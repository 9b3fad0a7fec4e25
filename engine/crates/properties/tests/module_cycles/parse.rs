//! The modules and paths that a source file names, without a Rust compiler.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The source text of each file, by its path inside `src`.
pub type Sources = BTreeMap<PathBuf, String>;

/// A module as its crate names it: the root has no segment.
pub type Module = Vec<String>;

/// The modules and paths that a file names.
#[derive(Default)]
pub struct File {
    pub path: PathBuf,
    /// By the name in scope: the path that was imported under it.
    pub imports: BTreeMap<String, Vec<String>>,
    /// All paths, each with the module, perhaps an inline one, in which it stands.
    pub paths: Vec<(Module, Vec<String>)>,
    /// It holds nothing but declarations of modules and imports.
    pub only_declares: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Separator,
    Mark(char),
}

pub fn read(path: &Path, text: &str) -> (Module, File) {
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
