//! Files that are written completely or not at all, and never in place of a device or a pipe.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat};

/// Check that a file can be written, and leave everything as it is.
pub fn check(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(_) => OpenOptions::new().write(true).open(path).map(|_| ()),
        Err(error) if error.kind() == io::ErrorKind::NotFound && unnamed(path).is_some() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            named(path).and_then(|(_, name)| fs::remove_file(name))
        }
        Err(error) => Err(error),
    }
}

/// Check that a file to write is not the one that is read. The error names it.
pub fn check_other(out: &Path, source: &Path) -> Result<(), String> {
    match (fs::canonicalize(out), fs::canonicalize(source)) {
        (Ok(written), Ok(read)) if written == read => {
            Err(format!("{}: the file that is read: write another file", out.display()))
        }
        _ => Ok(()),
    }
}

/// The message about the file that an option names, if it cannot be written.
pub fn write_error(option: &str, path: &Path, error: &io::Error) -> String {
    format!("{option} {}: cannot be written: {error}", path.display())
}

/// Write a file, or give an existing one this content. What is no regular file is written into. The target of a
/// symbolic link is replaced, not the link.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with(path, |file| file.write_all(bytes))?
}

/// The same with content that comes bit by bit. If it fails with an error of its own, nothing is replaced.
pub fn write_with<T, E>(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<T, E>,
) -> io::Result<Result<T, E>> {
    match fs::metadata(path) {
        Ok(facts) if facts.is_file() => replace(&fs::canonicalize(path)?, fill),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
            replace(path, fill)
        }
        // A device, a link to a file that is to be made, or what cannot be reached, such as links in a circle.
        _ => Ok(fill(&mut File::create(path)?)),
    }
}

fn replace<T, E>(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<T, E>,
) -> io::Result<Result<T, E>> {
    let (written, filled) = match beside(path, fill)? {
        Ok(written) => written,
        Err(error) => return Ok(Err(error)),
    };
    fs::rename(&written, path).inspect_err(|_| drop(fs::remove_file(&written)))?;
    Ok(Ok(filled))
}

/// Write a file in the same folder: its name. A process that is killed meanwhile leaves no file, if the file system has
/// files without a name.
fn beside<T, E>(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<T, E>,
) -> io::Result<Result<(PathBuf, T), E>> {
    if let Some(mut file) = unnamed(path) {
        let filled = match fill(&mut file) {
            Ok(filled) => filled,
            Err(error) => return Ok(Err(error)),
        };
        let name = temporary_name(path);
        let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
        if linkat(CWD, &descriptor, CWD, &name, AtFlags::SYMLINK_FOLLOW).is_err() {
            let (mut copy, name) = named(path)?;
            let copied = File::open(descriptor).and_then(|mut file| io::copy(&mut file, &mut copy));
            copied.inspect_err(|_| drop(fs::remove_file(&name)))?;
        }
        return Ok(Ok((name, filled)));
    }
    let (mut file, name) = named(path)?;
    match fill(&mut file) {
        Ok(filled) => Ok(Ok((name, filled))),
        Err(error) => {
            fs::remove_file(&name)?;
            Ok(Err(error))
        }
    }
}

/// A new file without a name in the folder of `path`; `None` if it cannot be made.
fn unnamed(path: &Path) -> Option<File> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let folder = folder.unwrap_or_else(|| Path::new("."));
    openat(CWD, folder, flags, Mode::from_raw_mode(0o666)).ok().map(File::from)
}

fn named(path: &Path) -> io::Result<(File, PathBuf)> {
    let name = temporary_name(path);
    Ok((File::create(&name)?, name))
}

fn temporary_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_leaves_everything_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        check(&path).expect("it can be written");
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 0);
        fs::write(&path, "before").expect("written");
        check(&path).expect("it can be written");
        assert_eq!(fs::read(&path).expect("read"), b"before");
        assert!(check(folder.path()).is_err(), "a folder");
        assert!(check(&folder.path().join("none").join("file")).is_err(), "no folder");
        let refused = check_other(&folder.path().join(".").join("file"), &path);
        assert!(refused.is_err_and(|error| error.ends_with("write another file")));
        check_other(&folder.path().join("new"), &path).expect("another file");
    }

    #[test]
    fn a_file_is_replaced_behind_its_link_without_leftovers() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        write(&path, b"first").expect("written");
        write(&link, b"second").expect("written");
        assert_eq!(fs::read(&path).expect("read"), b"second");
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 2);
        assert!(write(folder.path(), b"x").is_err(), "a folder");
        let (circle, dangling) = (folder.path().join("circle"), folder.path().join("dangling"));
        std::os::unix::fs::symlink(&circle, &circle).expect("a link");
        assert!(write(&circle, b"x").is_err(), "links in a circle");
        std::os::unix::fs::symlink(folder.path().join("new"), &dangling).expect("a link");
        write(&dangling, b"third").expect("written");
        assert_eq!(fs::read(folder.path().join("new")).expect("read"), b"third");
        let failed = write_with(&path, |file| {
            file.write_all(b"half").and(Err::<(), _>(io::Error::other("no")))
        });
        assert!(failed.expect("a file").is_err());
        assert_eq!(fs::read(&path).expect("read"), b"second", "as before");
    }
}
