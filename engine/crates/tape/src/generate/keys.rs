//! The keys of a tape: unique by construction, and a function of index and seed.

use crate::format::MAX_KEY_BYTES;
use crate::random::{mix, scramble};
use crate::workload::{IntegerDistribution, KeyShape, WorkloadError, invalid, part_of};

enum PatternPart {
    Text(String),
    Index { width: usize },
    Hex { digits: u32 },
}

/// Writes keys of one shape.
pub struct KeyWriter {
    seed: u64,
    shape: KeyFormat,
}

enum KeyFormat {
    Length { distribution: IntegerDistribution, first_keys: Vec<u32>, digits: usize },
    Pattern(Vec<PatternPart>),
    Names(Vec<String>),
}

impl KeyWriter {
    /// A writer for `count` unique keys. If they would be too short to be unique, the error names the
    /// minimum length.
    pub fn new(
        shape: &KeyShape,
        count: u32,
        first_keys: &[u32],
        seed: u64,
    ) -> Result<KeyWriter, WorkloadError> {
        let shape = match shape {
            KeyShape::Length(distribution) => {
                let digits = (count - 1).to_string().len();
                if let IntegerDistribution::Range(span) = distribution
                    && (span.low as usize) < digits
                {
                    return invalid(format!(
                        "--key-length {}: {count} unique keys need at least {digits} characters",
                        span.low
                    ));
                }
                let (distribution, first_keys) = (distribution.clone(), first_keys.to_vec());
                KeyFormat::Length { distribution, first_keys, digits }
            }
            KeyShape::Pattern(text) => KeyFormat::Pattern(parse_pattern(text, count)?),
            KeyShape::Names(names) => KeyFormat::Names(check_names(names)?),
        };
        Ok(KeyWriter { seed, shape })
    }

    /// Append key `index` to `out`.
    pub fn write(&self, index: u32, out: &mut Vec<u8>) {
        match &self.shape {
            KeyFormat::Length { distribution, first_keys, digits } => {
                let of_part = distribution.of_part(part_of(index, first_keys));
                let drawn = of_part.draw(mix(self.seed ^ u64::from(index)), MAX_KEY_BYTES as u32);
                // Draws that are too short for a unique key are lengthened.
                let length = (drawn as usize).clamp(*digits, MAX_KEY_BYTES);
                // The fixed number of digits at the end keeps keys of different lengths apart.
                out.resize(out.len() + length - digits, b'k');
                out.extend_from_slice(format!("{index:0digits$}").as_bytes());
            }
            KeyFormat::Names(names) => out.extend_from_slice(names[index as usize].as_bytes()),
            KeyFormat::Pattern(parts) => {
                parts.iter().for_each(|part| self.write_part(part, index, out))
            }
        }
    }

    fn write_part(&self, part: &PatternPart, index: u32, out: &mut Vec<u8>) {
        match part {
            PatternPart::Text(text) => out.extend_from_slice(text.as_bytes()),
            PatternPart::Index { width } => {
                out.extend_from_slice(format!("{index:0width$}").as_bytes())
            }
            PatternPart::Hex { digits } => {
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
        if name.is_empty() || name.len() > MAX_KEY_BYTES || !clean {
            return invalid(format!(
                "--key-names {name:?}: keys are 1 to 250 bytes without spaces or control characters"
            ));
        }
        if names[..index].contains(name) {
            return invalid(format!("--key-names: {name:?} appears twice"));
        }
    }
    Ok(names.to_vec())
}

fn parse_pattern(text: &str, count: u32) -> Result<Vec<PatternPart>, WorkloadError> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let Some(close) = rest[open..].find('}').map(|at| open + at) else {
            return invalid(format!("--key-pattern {text:?}: a {{ without a }}"));
        };
        parts.push(PatternPart::Text(rest[..open].to_owned()));
        parts.push(parse_field(&rest[open + 1..close], text)?);
        rest = &rest[close + 1..];
    }
    parts.push(PatternPart::Text(rest.to_owned()));
    check_pattern(&parts, text, count)?;
    Ok(parts)
}

fn parse_field(field: &str, text: &str) -> Result<PatternPart, WorkloadError> {
    let (name, width) = field.split_once(':').unwrap_or((field, ""));
    match (name, width.parse::<u32>().ok(), width.is_empty()) {
        ("index", None, true) => Ok(PatternPart::Index { width: 0 }),
        ("index", Some(width), _) if width <= 200 => {
            Ok(PatternPart::Index { width: width as usize })
        }
        ("hex", Some(digits), _) if (1..=200).contains(&digits) => Ok(PatternPart::Hex { digits }),
        _ => invalid(format!(
            "--key-pattern {text:?}: {{{field}}} is none of {{index}}, {{index:08}}, {{hex:10}}"
        )),
    }
}

fn check_pattern(parts: &[PatternPart], text: &str, count: u32) -> Result<(), WorkloadError> {
    let unique = parts.iter().any(|part| match part {
        PatternPart::Text(_) => false,
        PatternPart::Index { .. } => true,
        PatternPart::Hex { digits } => *digits >= 8 || u64::from(count) <= 1 << (digits * 4),
    });
    if !unique && count > 1 {
        let digits = format!("{:x}", count - 1).len();
        return invalid(format!(
            "--key-pattern {text:?} makes fewer than {count} keys: \
             put {{index}} or {{hex:{digits}}} in it"
        ));
    }
    let longest: usize = parts
        .iter()
        .map(|part| match part {
            PatternPart::Text(text) => text.len(),
            PatternPart::Index { width } => (*width).max(count.to_string().len()),
            PatternPart::Hex { digits } => *digits as usize,
        })
        .sum();
    let printable = parts.iter().all(|part| match part {
        PatternPart::Text(text) => text.bytes().all(|byte| byte > b' ' && byte != 0x7f),
        _ => true,
    });
    if longest == 0 || longest > MAX_KEY_BYTES || !printable {
        return invalid(format!(
            "--key-pattern {text:?}: keys are 1 to 250 bytes without spaces or control characters"
        ));
    }
    Ok(())
}
