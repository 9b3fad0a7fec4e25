//! The embedded server as a process.

use std::sync::Arc;

use cachemark_server::{Accounts, State, Tls, start};
use cachemark_storage::Store;

use crate::process::StopSignals;
use crate::serve::announcement::announce;
use crate::serve::arguments::Arguments;

/// What `version` answers: clients look for memcached's number, so it begins with the one whose
/// semantics are followed.
const VERSION: &str = concat!("1.6.45-cachemark-", env!("CARGO_PKG_VERSION"));

/// Serve until told to stop.
pub fn serve(arguments: &Arguments) -> Result<(), String> {
    give_large_blocks_back();
    let settings = arguments.settings();
    let endpoints = arguments.endpoints();
    // Watched before the first connection, so that no signal is missed.
    let signals = StopSignals::catch()?;
    let store = Store::with_hash_power(settings.memory_bytes, arguments.hash_power)
        .map_err(|error| format!("--memory, --hash-power: {error}"))?;
    let state = State::with_store(store, settings, VERSION);
    let state = match accounts(arguments)? {
        Some(accounts) => state.with_accounts(accounts),
        None => state,
    };
    let state = Arc::new(match tls(arguments)? {
        Some(tls) => state.with_tls(tls),
        None => state,
    });
    let mut server = start(&endpoints, &state).map_err(|error| error.to_string())?;
    announce(&server.addresses, settings.io.name(), &settings)?;
    signals.wait(arguments.stop_with_stdin);
    server.stop();
    Ok(())
}

/// So large a block is mapped by itself, and unmapped when it is freed.
const LARGE_BLOCK_BYTES: i32 = 128 << 10;

/// What connections hold goes back to the system when they end. glibc's allocator would raise that
/// size to what is freed, up to 32 MiB, and keep such blocks (mallopt(3), M_MMAP_THRESHOLD).
fn give_large_blocks_back() {
    // SAFETY: no other thread is there yet. Where it is refused, more memory is held, no more.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
    }
}

fn tls(arguments: &Arguments) -> Result<Option<Tls>, String> {
    match arguments.tls_cert.as_ref().zip(arguments.tls_key.as_ref()) {
        Some((certificates, key)) => {
            Tls::read(certificates, key).map(Some).map_err(|error| format!("TLS: {error}"))
        }
        None => Ok(None),
    }
}

fn accounts(arguments: &Arguments) -> Result<Option<Accounts>, String> {
    let Some(path) = &arguments.auth_file else { return Ok(None) };
    let named = |error: String| format!("--auth-file {}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
    Accounts::parse(&text).map(Some).map_err(named)
}
