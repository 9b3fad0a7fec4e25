//! Serves as a configuration says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cachemark_command::process::{StopSignals, print_error};
use cachemark_server::{
    Accounts, IoMode, Protocol, Settings, Shutdown, State, Tls, TlsSettings, start,
};
use cachemark_storage::{LIMIT_BYTES_MIN, Store};
use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::SIGUSR1;

use crate::memcached::configuration::{Configuration, Ending, FAILURE, SYSTEM, failed};
use crate::memcached::{endpoints, memory_file, port_file, system};
use crate::serve::embedded::{VERSION, read_accounts, reread_accounts, return_large_blocks};

/// Serve until a signal to stop.
pub fn serve(configuration: &Configuration) -> Result<(), Ending> {
    // Here relative paths still mean what the user meant.
    let accounts = accounts(configuration)?;
    let tls = tls(configuration)?;
    report_without_effect(configuration);
    system::prepare(configuration)?;
    return_large_blocks();
    // Before the first connection, so that no signal is missed.
    let caught = StopSignals::catch_and_reload(&[SIGUSR1]);
    let signals = caught.map_err(|error| failed(SYSTEM, error))?;
    let state = Arc::new(state(configuration, accounts, tls)?);
    let mut server = start(&endpoints::of(configuration), &state)
        .map_err(|error| failed(SYSTEM, format!("failed to listen: {error}")))?;
    write_files(configuration, &server.addresses);
    let signal = signals.wait_and_reload(false, || {
        if let Some(path) = user_file(configuration) {
            reread_accounts(&path, &state);
        }
        if let Some(Err(error)) = state.tls().map(Tls::refresh) {
            print_error(&format!("the certificate is still the old one: {error}"));
        }
    });
    let graceful = signal == Some(SIGUSR1);
    if graceful {
        print_error("Gracefully stopping");
    }
    server.stop();
    if let (true, Some(path)) = (graceful, &configuration.tuning.memory_file) {
        memory_file::close(path, configuration).map_err(|error| failed(FAILURE, error))?;
    }
    if let (true, Some(path)) = (configuration.daemon, &configuration.pid_file) {
        // Another program may have removed it already.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Say once which options tune what this server has not.
fn report_without_effect(configuration: &Configuration) {
    let mut names = configuration.without_effect.clone();
    names.dedup();
    if !names.is_empty() {
        print_error(&format!("without effect here: {}", names.join(", ")));
    }
}

fn state(
    configuration: &Configuration,
    accounts: Option<Accounts>,
    tls: Option<Tls>,
) -> Result<State, Ending> {
    let settings = settings(configuration);
    let store = store(configuration, settings.memory_bytes)?;
    let state = State::with_store(store, settings, VERSION)
        .with_tuning(configuration.tuning.clone())
        .with_shutdown(end_process);
    state.log.set_detail(configuration.counts_prefixes);
    let state = match accounts {
        Some(accounts) => state.with_accounts(accounts),
        None => state,
    };
    Ok(match tls {
        Some(tls) => state.with_tls(tls),
        None => state,
    })
}

fn store(configuration: &Configuration, memory_bytes: usize) -> Result<Store, Ending> {
    let power = configuration.tuning.hash_power;
    let fixed = (configuration.fixed_table && power > 0).then_some(power);
    // Locked memory would include the addresses for a higher limit.
    let make = if configuration.locks_memory { Store::with_hash_power } else { Store::adjustable };
    let store = match &configuration.tuning.memory_file {
        None => make(memory_bytes, fixed)
            .map_err(|error| failed(FAILURE, format!("-m, -o hashpower: {error}")))?,
        Some(path) => memory_file::open(path, configuration, memory_bytes, fixed)
            .map_err(|error| failed(FAILURE, error))?,
    };
    store.set_evicts(configuration.evicts);
    if !configuration.tuning.cas {
        store.disable_cas();
    }
    if configuration.huge_pages
        && let Err(error) = store.use_huge_pages()
    {
        print_error(&format!("-L: the system gives no huge pages: {error}"));
    }
    if fixed.is_none() {
        let power = if power > 0 { power } else { table_power(memory_bytes) };
        store.grow_table_to(power, 0);
    }
    Ok(store)
}

/// memcached's table begins with 2 to this power slots.
const HASH_POWER: u32 = 16;
/// A table without an option for it begins with at most 1 / `TABLE_SHARE` of the memory.
const TABLE_SHARE: usize = 64;
const SLOT_BYTES: usize = 8;

/// With how many slots a table of this memory begins, as a power of two.
fn table_power(memory_bytes: usize) -> u32 {
    (memory_bytes / TABLE_SHARE / SLOT_BYTES).max(1).ilog2().min(HASH_POWER)
}

/// Send this process the signal that ends it.
fn end_process(how: Shutdown) {
    let signal = match how {
        Shutdown::Now => Signal::INT,
        Shutdown::Graceful => Signal::USR1,
    };
    // A process may always signal itself.
    let _ = kill_process(getpid(), signal);
}

fn settings(configuration: &Configuration) -> Settings {
    let memory_bytes = configuration.memory_mebibytes.max(0) as usize;
    Settings {
        io: IoMode::Events,
        threads: configuration.threads,
        memory_bytes: memory_bytes.saturating_mul(1 << 20).max(LIMIT_BYTES_MIN),
        item_bytes_max: configuration.item_bytes as u64,
        max_connections: configuration.connections,
        protocol: configuration.protocol.unwrap_or(Protocol::Any),
        commands: configuration.commands,
        requests_per_event: configuration.requests_per_event,
        idle_timeout_s: configuration.idle_timeout_s,
        families_apart: true,
        backlog: configuration.backlog,
        unix_mode: configuration.unix_mode,
        watcher_buffer_bytes: configuration.watcher_buffer_bytes,
        prefix_delimiter: configuration.prefix_delimiter,
    }
}

/// The file of users: of -Y, or with -S the one that Debian's SASL plug-in of memcached reads.
fn user_file(configuration: &Configuration) -> Option<PathBuf> {
    let sasl = || configuration.sasl.then(|| std::env::var_os("MEMCACHED_SASL_PWDB")).flatten();
    configuration.auth_file.clone().or_else(|| sasl().map(PathBuf::from))
}

fn accounts(configuration: &Configuration) -> Result<Option<Accounts>, Ending> {
    match user_file(configuration) {
        Some(path) => read_accounts(&path).map(Some).map_err(|error| failed(FAILURE, error)),
        None if configuration.sasl => {
            let remedy = "-S: name a file with lines of user:password in MEMCACHED_SASL_PWDB";
            Err(failed(FAILURE, remedy))
        }
        None => Ok(None),
    }
}

fn tls(configuration: &Configuration) -> Result<Option<Tls>, Ending> {
    let files = configuration.tls_certificate.clone().zip(configuration.tls_key.clone());
    let read = |(certificates, key)| {
        let settings = TlsSettings {
            certificates,
            key,
            authorities: configuration.tls_authorities.clone(),
            clients: configuration.tls_clients,
            only_1_3: configuration.tls_only_1_3,
            ciphers: configuration.tls_ciphers.clone(),
        };
        Tls::read(settings).map_err(|error| failed(FAILURE, format!("TLS: {error}")))
    };
    files.filter(|_| configuration.tls).map(read).transpose()
}

/// Write the files that say where the server is. The server serves in any case.
fn write_files(configuration: &Configuration, addresses: &[String]) {
    if let (None, Some(path)) = (&configuration.unix, std::env::var_os("MEMCACHED_PORT_FILENAME"))
        && let Err(error) = port_file::write(Path::new(&path), addresses)
    {
        print_error(&error);
    }
    if let Some(path) = &configuration.pid_file
        && let Err(error) = std::fs::write(path, format!("{}\n", std::process::id()))
    {
        print_error(&format!("Could not open the pid file {}: {error}", path.display()));
    }
}
