//! A user and a password.

use std::fmt;

/// A user and a password. The password comes from a file, never from the command line.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub(crate) user: String,
    pub(crate) password: String,
}

impl Credentials {
    /// Parse `user:file`. The password is the first line of the file.
    pub fn read(text: &str) -> Result<Credentials, String> {
        let parts = text.split_once(':');
        let (user, file) = parts
            .filter(|(user, file)| !user.is_empty() && !file.is_empty())
            .ok_or_else(|| format!("{text:?}: write USER:FILE, with the password in the file"))?;
        let content = std::fs::read_to_string(file)
            .map_err(|error| format!("the password file {file}: {error}"))?;
        let password = content.lines().next().filter(|line| !line.is_empty());
        let password = password.ok_or_else(|| format!("the password file {file} is empty"))?;
        Ok(Credentials { user: user.to_owned(), password: password.to_owned() })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Credentials({}, …)", self.user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_read_from_a_file_and_never_shown() {
        let path = std::env::temp_dir().join(format!("cachemark-password-{}", std::process::id()));
        std::fs::write(&path, "secret\n").expect("a file");
        let read = Credentials::read(&format!("ann:{}", path.display()));
        std::fs::remove_file(&path).expect("our own file");
        let read = read.expect("credentials");
        assert_eq!((read.user.as_str(), read.password.as_str()), ("ann", "secret"));
        assert!(!format!("{read:?}").contains("secret"));
        assert!(Credentials::read("ann").is_err());
        assert!(Credentials::read("ann:/nowhere/at/all").is_err());
    }
}
