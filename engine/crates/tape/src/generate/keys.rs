//! The key table: what each key looks like. Unique by construction, a function of index and seed.

use crate::format::KEY_BYTES_MAX;
use crate::random::{mix, scramble};
use crate::workload::{KeyShape, Law, WorkloadError, bad};

enum Part {
    Text(String),
    Index { width: usize },
    Hex { digits: u32 },
}

/// Writes keys of one shape.
pub struct KeyWriter {
    seed: u64,
    shape: Shape,
}

enum Shape {
    Length { law: Law, digits: usize },
    Pattern(Vec<Part>),
    Names(Vec<String>),
}

impl KeyWriter {
    /// A writer for `count` unique keys. An error says the least length that would do.
    pub fn new(shape: &KeyShape, count: u32, seed: u64) -> Result<KeyWriter, WorkloadError> {
        let shape = match shape {
            KeyShape::Length(law) => {
                let digits = (count - 1).to_string().len();
                if let Law::Span(span) = law
                    && (span.low as usize) < digits
                {
                    return bad(format!(
                        "--key-length {}: {count} unique keys need at least {digits} characters",
                        span.low
                    ));
                }
                Shape::Length { law: law.clone(), digits }
            }
            KeyShape::Pattern(text) => Shape::Pattern(parse_pattern(text, count)?),
            KeyShape::Names(names) => Shape::Names(check_names(names)?),
        };
        Ok(KeyWriter { seed, shape })
    }

    /// Append key `index` to `out`.
    pub fn write(&self, index: u32, out: &mut Vec<u8>) {
        match &self.shape {
            Shape::Length { law, digits } => {
                let drawn = law.draw(mix(self.seed ^ u64::from(index)), KEY_BYTES_MAX as u32);
                // A law that draws less than a key needs is cut there.
                let length = (drawn as usize).clamp(*digits, KEY_BYTES_MAX);
                // A fixed number of digits at the end keeps keys of different lengths apart.
                out.resize(out.len() + length - digits, b'k');
                out.extend_from_slice(format!("{index:0digits$}").as_bytes());
            }
            Shape::Names(names) => out.extend_from_slice(names[index as usize].as_bytes()),
            Shape::Pattern(parts) => {
                parts.iter().for_each(|part| self.write_part(part, index, out))
            }
        }
    }

    fn write_part(&self, part: &Part, index: u32, out: &mut Vec<u8>) {
        match part {
            Part::Text(text) => out.extend_from_slice(text.as_bytes()),
            Part::Index { width } => out.extend_from_slice(format!("{index:0width$}").as_bytes()),
            Part::Hex { digits } => {
                let bits = (digits * 4).min(64);
                let number = scramble(u64::from(index), self.seed, bits);
                let digits = *digits as usize;
                out.extend_from_slice(format!("{number:0digits$x}").as_bytes());
            }
        }
    }
}

fn check_names(names: &[String]) -> Result<Vec<String>, WorkloadError> {
    for (index, name) in names.iter().enumerate() {
        let clean = name.bytes().all(|byte| byte > b' ' && byte != 0x7f);
        if name.is_empty() || name.len() > KEY_BYTES_MAX || !clean {
            return bad(format!(
                "--key-names {name:?}: keys are 1 to 250 bytes without spaces or control characters"
            ));
        }
        if names[..index].contains(name) {
            return bad(format!("--key-names: {name:?} stands there twice"));
        }
    }
    Ok(names.to_vec())
}

fn parse_pattern(text: &str, count: u32) -> Result<Vec<Part>, WorkloadError> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let Some(close) = rest[open..].find('}').map(|at| open + at) else {
            return bad(format!("--key-pattern {text:?}: a {{ without a }}"));
        };
        parts.push(Part::Text(rest[..open].to_owned()));
        parts.push(parse_field(&rest[open + 1..close], text)?);
        rest = &rest[close + 1..];
    }
    parts.push(Part::Text(rest.to_owned()));
    check_pattern(&parts, text, count)?;
    Ok(parts)
}

fn parse_field(field: &str, text: &str) -> Result<Part, WorkloadError> {
    let (name, width) = field.split_once(':').unwrap_or((field, ""));
    match (name, width.parse::<u32>().ok(), width.is_empty()) {
        ("index", None, true) => Ok(Part::Index { width: 0 }),
        ("index", Some(width), _) if width <= 200 => Ok(Part::Index { width: width as usize }),
        ("hex", Some(digits), _) if (1..=200).contains(&digits) => Ok(Part::Hex { digits }),
        _ => bad(format!(
            "--key-pattern {text:?}: {{{field}}} is none of {{index}}, {{index:08}}, {{hex:10}}"
        )),
    }
}

fn check_pattern(parts: &[Part], text: &str, count: u32) -> Result<(), WorkloadError> {
    let unique = parts.iter().any(|part| match part {
        Part::Text(_) => false,
        Part::Index { .. } => true,
        Part::Hex { digits } => *digits >= 8 || u64::from(count) <= 1 << (digits * 4),
    });
    if !unique && count > 1 {
        let digits = format!("{:x}", count - 1).len();
        return bad(format!(
            "--key-pattern {text:?} makes fewer than {count} keys: \
             put {{index}} or {{hex:{digits}}} in it"
        ));
    }
    let longest: usize = parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.len(),
            Part::Index { width } => (*width).max(count.to_string().len()),
            Part::Hex { digits } => *digits as usize,
        })
        .sum();
    let printable = parts.iter().all(|part| match part {
        Part::Text(text) => text.bytes().all(|byte| byte > b' ' && byte != 0x7f),
        _ => true,
    });
    if longest == 0 || longest > KEY_BYTES_MAX || !printable {
        return bad(format!(
            "--key-pattern {text:?}: keys are 1 to 250 bytes without spaces or control characters"
        ));
    }
    Ok(())
}
