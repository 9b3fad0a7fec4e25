//! The file of `-e`: the items of a server that ended gracefully, for the next one.
//!
//! Beside it, a file with the ending `.meta` says that the items are complete. The server that takes them over removes
//! it, so that what a killed server leaves is not used.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cachemark_command::process::print_error;
use cachemark_command::whole_file;
use cachemark_storage::Store;

use crate::memcached::configuration::Configuration;

const TITLE: &str = "items of a cachemark server";

/// The items that the last server left, or an empty store in the file.
pub fn open(
    path: &Path,
    configuration: &Configuration,
    memory_bytes: usize,
    hash_power: Option<u32>,
) -> Result<Store, String> {
    let told = |error: io::Error| format!("-e {}: {error}", path.display());
    let meta = meta_path(path);
    if let Some(found) = read(&meta)? {
        fs::remove_file(&meta).map_err(|error| format!("-e {}: {error}", meta.display()))?;
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let kept = match found == settings(configuration) {
            true => Store::kept(path, memory_bytes, hash_power, now_s as u32).map_err(told)?,
            false => None,
        };
        match kept {
            Some(store) => return Ok(store),
            None => print_error("-e: the items are of a server with other options: starting empty"),
        }
    }
    Store::keep(path, memory_bytes, hash_power).map_err(told)
}

/// Say that the items are complete. The server has stopped.
pub fn close(path: &Path, configuration: &Configuration) -> Result<(), String> {
    let meta = meta_path(path);
    whole_file::write(&meta, format!("{TITLE}\n{}", settings(configuration)).as_bytes())
        .map_err(|error| whole_file::write_error("-e", &meta, &error))
}

fn meta_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".meta");
    name.into()
}

/// The settings that are in the file; `None` if there is none.
fn read(meta: &Path) -> Result<Option<String>, String> {
    let text = match fs::read(meta) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| format!("-e {}: {error}", meta.display()))?,
    };
    let text = String::from_utf8_lossy(&text);
    let settings = text.strip_prefix(TITLE).and_then(|rest| rest.strip_prefix('\n'));
    let wrong = || format!("-e {}: not a file of this server; remove it", meta.display());
    settings.map(|settings| Some(settings.to_owned())).ok_or_else(wrong)
}

/// The settings that must be the same for the items to be of use.
fn settings(from: &Configuration) -> String {
    format!(
        "version {}\nmemory_mebibytes {}\nitem_bytes {}\ncas {}\n",
        env!("CARGO_PKG_VERSION"),
        from.memory_mebibytes,
        from.item_bytes,
        from.tuning.cas
    )
}
