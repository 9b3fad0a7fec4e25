//! How much a client may have at once: refused by arithmetic, before memory or descriptors run out.

const MAX_THREADS: u64 = 4096;
/// An address has 65,535 ports; several servers, or several addresses, allow more.
const MAX_CONNECTIONS: u64 = 1 << 20;
/// Each outstanding operation has its place in memory.
const MAX_OUTSTANDING: u64 = 1 << 24;

/// Refuse numbers that no machine can carry out.
pub fn check_extent(threads: u64, connections: u64, depth: u64) -> Result<(), String> {
    check("--threads", threads, MAX_THREADS)?;
    check("--connections", connections, MAX_CONNECTIONS)?;
    check("--connections × --depth", connections.saturating_mul(depth), MAX_OUTSTANDING)
}

fn check(name: &str, number: u64, most: u64) -> Result<(), String> {
    if number <= most {
        return Ok(());
    }
    Err(format!("{name} {number}: at most {most}"))
}

#[cfg(test)]
mod tests {
    use super::check_extent;

    #[test]
    fn what_no_machine_can_carry_out_is_refused() {
        assert_eq!(check_extent(8, 10_000, 16), Ok(()));
        for (threads, connections, depth) in [
            (1, 1, 1_000_000_000),
            (1, u64::from(u32::MAX), 1),
            (100_000, 100_000, 1),
            (1, 9, u64::MAX),
        ] {
            let refused = check_extent(threads, connections, depth);
            assert!(
                refused.is_err_and(|text| text.contains("at most")),
                "{threads} {connections} {depth}"
            );
        }
    }
}
