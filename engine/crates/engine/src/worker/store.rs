//! The item store as a worker, without a network: `native/store` in the worker's own process, `native/shm` in
//! memory that the workers of a trial share.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cachemark_command::units;
use cachemark_load::{InProcess, PrepareError};
use cachemark_storage::Store;
use cachemark_tape::{Tape, Verb};
use clap::ValueEnum;

use crate::options::connection_options::OptionError;
use crate::worker::messages::{Prepare, Ready};

const FOLDER: &str = "/dev/shm";
const PREFIX: &str = "cachemark-";

/// The target of a worker's tape.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// Servers, over the network
    Network,
    /// A store in the worker's own process
    Store,
    /// A store in memory that the workers of a trial share
    Shm,
}

const MEMORY: &str = "memory";
const HASH_POWER: &str = "hash_power";
const MEMORY_DEFAULT: &str = "1g";

/// The answer to `hello`: no wire, no pipeline, no schedule, no operation without a reply.
pub fn hello(target: Target) -> Ready {
    let mut capabilities = vec!["none", "threads", "timeline", "slices", "groups"];
    capabilities.extend(Verb::ALL.into_iter().map(|verb| verb.kind(false)));
    Ready {
        client: Some(if target == Target::Shm { "shm" } else { "store" }),
        library: Some("cachemark-storage"),
        library_version: Some(env!("CARGO_PKG_VERSION")),
        language: Some("rust"),
        runtime: Some("native".to_owned()),
        capabilities,
        ..Ready::default()
    }
}

/// Check whether the store supports a `prepare`. An error has the reason and a remedy.
pub fn check(prepare: &Prepare) -> Result<(), OptionError> {
    let refuse = |reason: String, remedy| Err(OptionError::Unsupported(reason, remedy));
    if !prepare.servers.is_empty() {
        return refuse("a store in the process has no server".to_owned(), "name none");
    }
    if prepare.wire != "none" {
        return refuse(format!("no wire {:?} in the process", prepare.wire), "the wire is none");
    }
    if prepare.depth != 1 || prepare.connections != prepare.threads {
        let text = "a call in the process has no connections and no depth";
        return refuse(text.to_owned(), "as many connections as threads, and depth 1");
    }
    let known = |name: &str| name == MEMORY || name == HASH_POWER;
    if let Some(option) = prepare.options.keys().find(|name| !known(name)) {
        return refuse(format!("no option {option:?}"), "a store has memory and hash_power");
    }
    match size(prepare).and_then(|(memory, power)| Store::check_size(memory, power)) {
        Ok(()) => Ok(()),
        Err(reason) => refuse(reason, "such as memory=1g and hash_power=16"),
    }
}

/// The memory and the hash power of a `prepare`.
fn size(prepare: &Prepare) -> Result<(usize, Option<u32>), String> {
    let memory = prepare.options.get(MEMORY).map_or(MEMORY_DEFAULT, String::as_str);
    let memory = units::bytes(memory).map_err(|error| format!("memory {memory:?}: {error}"))?;
    let power =
        |text: &String| text.parse().map_err(|_| format!("hash_power {text:?} is no whole number"));
    let power = prepare.options.get(HASH_POWER).map(power).transpose()?;
    Ok((memory as usize, power))
}

/// Create or open the store, and its callers.
pub fn prepare(
    target: Target,
    prepare: &Prepare,
    tape: Arc<Tape>,
) -> Result<InProcess, PrepareError> {
    let usage = |text: String| PrepareError::Usage(text);
    let (memory, power) = size(prepare).map_err(usage)?;
    let store = match target {
        Target::Shm => {
            let path = path_of(prepare);
            let name = path.display();
            shared(&path, prepare.segment, memory, power)
                .map_err(|error| usage(format!("{name}: {error}")))?
        }
        _ => Store::with_hash_power(memory, power).map_err(usage)?,
    };
    InProcess::prepare(Arc::new(store), tape, prepare.threads, prepare.segment)
}

/// The workers of a trial have the same parent and the same tape, and are prepared one after the other. The
/// first creates the store, the last removes its file, so that nothing is left behind.
fn shared(
    path: &Path,
    (segment, segments): (u64, u64),
    memory: usize,
    power: Option<u32>,
) -> io::Result<Store> {
    let store = if segment == 0 {
        remove_abandoned();
        // This trial's own parent may have left it: an attempt before this one was killed.
        let _ = fs::remove_file(path);
        Store::create(path, memory, power)?
    } else {
        Store::open(path)?
    };
    if segment + 1 == segments {
        fs::remove_file(path)?;
    }
    Ok(store)
}

fn path_of(prepare: &Prepare) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    prepare.tape.hash(&mut hasher);
    Path::new(FOLDER).join(format!("{PREFIX}{}-{:016x}", parent_id(), hasher.finish()))
}

/// Remove the stores of trials that were killed during their preparation: their parents have ended. What cannot
/// be removed, such as another user's, stays.
fn remove_abandoned() {
    for entry in fs::read_dir(FOLDER).into_iter().flatten().flatten() {
        if entry.file_name().to_str().and_then(parent_in).is_some_and(has_ended) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The parent's process number in a name of `path_of`. Other names give none.
fn parent_in(name: &str) -> Option<u32> {
    let (parent, hash) = name.strip_prefix(PREFIX)?.split_once('-')?;
    let is_hash = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| parent.parse().ok())?
}

/// Where /proc is not mounted nothing is known of a process, and none has ended.
fn has_ended(process: u32) -> bool {
    let exists = |name: &str| Path::new("/proc").join(name).exists();
    exists("self") && !exists(&process.to_string())
}
