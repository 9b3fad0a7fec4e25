//! Sets of CPUs: as typed, and as the kernel allows them.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity};

/// The CPUs that this process may use.
pub fn usable() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// Parse `0-1,3`: each CPU once, in order.
pub fn parse(text: &str) -> Result<Vec<usize>, String> {
    let refuse = || format!("{text:?} is no set of CPUs: write 0-1 or 0,2,3");
    let number = |text: &str| -> Result<usize, String> {
        let known = text.trim().parse().ok().filter(|cpu: &usize| *cpu < CpuSet::MAX_CPU);
        known.ok_or_else(refuse)
    };
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high) = (number(low)?, number(high)?);
        if low > high {
            return Err(refuse());
        }
        cpus.extend(low..=high);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_cpus_are_parsed() {
        assert_eq!(parse("0"), Ok(vec![0]));
        assert_eq!(parse("2-3, 0,3"), Ok(vec![0, 2, 3]));
        for text in ["", "a", "1-0", "0-", "-1", "0,", "99999"] {
            assert!(parse(text).expect_err("no set").contains("write 0-1"), "{text}");
        }
    }
}
