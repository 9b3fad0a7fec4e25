//! Numbers with units, as people type them: `10k`, `64m`, `500ms`.

use std::time::Duration;

/// A count or a rate: decimal suffixes, `10k` is 10,000.
pub fn count(text: &str) -> Result<f64, String> {
    let trimmed = text.trim();
    let (number, factor) = match trimmed.char_indices().last() {
        Some((at, 'k' | 'K')) => (&trimmed[..at], 1e3),
        Some((at, 'm' | 'M')) => (&trimmed[..at], 1e6),
        Some((at, 'g' | 'G')) => (&trimmed[..at], 1e9),
        _ => (trimmed, 1.0),
    };
    match number.trim().parse::<f64>().map(|value| value * factor) {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err(format!("{text:?} is no number: write 1000, 10k or 1.5M")),
    }
}

/// A whole count that is at least 1.
pub fn whole(text: &str) -> Result<u64, String> {
    let value = count(text)?;
    // 1.001M is no whole number in binary.
    let whole = value.round();
    if whole < 1.0 || (value - whole).abs() > whole * f64::EPSILON || whole > 9e15 {
        return Err(format!("{text:?}: a whole number of at least 1 is needed"));
    }
    Ok(whole as u64)
}

/// A rate per second, above 0.
pub fn rate(text: &str) -> Result<f64, String> {
    match count(text)? {
        value if value > 0.0 => Ok(value),
        _ => Err(format!("{text:?}: a rate must be above 0")),
    }
}

/// A size in bytes: binary suffixes, `64m` is 64 MiB.
pub fn bytes(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    // 4kB and 4KiB are what 4k is.
    let short = trimmed.strip_suffix(['b', 'B']).unwrap_or(trimmed);
    let short = short.strip_suffix(['i', 'I']).filter(|_| short != trimmed).unwrap_or(short);
    let trimmed = if short.ends_with(char::is_alphabetic) { short } else { trimmed };
    let (number, factor) = match trimmed.char_indices().last() {
        Some((at, 'k' | 'K')) => (&trimmed[..at], 1 << 10),
        Some((at, 'm' | 'M')) => (&trimmed[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&trimmed[..at], 1 << 30),
        _ => (trimmed, 1),
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|value| value.checked_mul(factor))
        .filter(|value| *value > 0)
        .ok_or_else(|| format!("{text:?} is no size: write 1048576, 512k, 64m or 1g"))
}

/// A duration: `ns`, `us`, `ms`, `s` or `m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let trimmed = text.trim();
    let at = trimmed.find(char::is_alphabetic).unwrap_or(trimmed.len());
    let seconds = match &trimmed[at..] {
        "" if trimmed == "0" => 1.0,
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        _ => return Err(format!("{text:?}: say the unit, as in 500ms, 30s or 2m")),
    };
    match trimmed[..at].parse::<f64>() {
        Ok(value) if value.is_finite() && (0.0..1e9).contains(&(value * seconds)) => {
            Ok(Duration::from_secs_f64(value * seconds))
        }
        _ => Err(format!("{text:?} is no duration: write 500ms, 30s or 2m")),
    }
}

/// A share such as `1/100`, as its second number.
pub fn fraction(text: &str) -> Result<u32, String> {
    let one_of = text.trim().strip_prefix("1/").and_then(|one_of| one_of.parse().ok());
    one_of
        .filter(|one_of| *one_of > 0)
        .ok_or_else(|| format!("{text:?}: write 1/100 for one of a hundred"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_type_units() {
        assert_eq!(count("10k"), Ok(10_000.0));
        assert_eq!(count(" 10k "), Ok(10_000.0));
        assert_eq!([bytes("4k"), bytes("4kB"), bytes("4KiB")], [Ok(4096), Ok(4096), Ok(4096)]);
        assert!([bytes("4b"), bytes("4ib"), bytes("b"), bytes("kib")].iter().all(Result::is_err));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(count("1.5M"), Ok(1_500_000.0));
        assert_eq!(whole("1k"), Ok(1000));
        assert_eq!(bytes("64m"), Ok(64 << 20));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5µs"), Ok(Duration::from_nanos(1500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!([fraction("1/100"), fraction(" 1/1")], [Ok(100), Ok(1)]);
        for text in ["", "100", "0.01", "1/0", "2/3", "1/-5", "1/99999999999"] {
            assert!(fraction(text).is_err(), "{text}");
        }
        for text in ["", "-1", "k", "1.5.2", "nan", "inf", "1e308g"] {
            assert!(count(text).is_err(), "{text}");
        }
        assert!(whole("0").is_err());
        assert!(whole("0.5").is_err());
        assert!(rate("0").is_err());
        assert!(bytes("99999999999999g").is_err());
        assert!(bytes("0").is_err());
        for text in ["30", "1h", "-1s", "s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
