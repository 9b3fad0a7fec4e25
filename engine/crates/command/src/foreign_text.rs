//! Makes texts from outside, such as keys of a tape or names in a trace, harmless for a terminal.

use std::fmt::Write;

/// The text with escapes in place of control characters, and of characters that are invisible or change the
/// order of others. Line ends and tabs stay.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => out.push(character),
            _ if is_unsafe(character) => {
                let _ = write!(out, "{}", character.escape_unicode());
            }
            _ => out.push(character),
        }
    }
    out
}

fn is_unsafe(character: char) -> bool {
    let unseen = matches!(
        character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
    );
    unseen || character.is_control()
}

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn what_moves_a_cursor_is_escaped() {
        assert_eq!(clean("\u{1b}[2J\u{9b}m\r\u{7}"), "\\u{1b}[2J\\u{9b}m\\u{d}\\u{7}");
        assert_eq!(clean("a\u{202e}b\u{200b}"), "a\\u{202e}b\\u{200b}");
    }

    #[test]
    fn harmless_text_stays_as_it_is() {
        for text in ["", "key-1", "naïve 🙂", "a\n\tb", "ключ", "µs → …"] {
            assert_eq!(clean(text), text);
        }
    }
}
