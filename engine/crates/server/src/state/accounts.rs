//! The users of a server: a file of users and passwords, in the form of memcached's `-Y`.

/// The users of an auth file.
#[derive(Debug)]
pub struct Accounts(Vec<(Vec<u8>, Vec<u8>)>);

impl Accounts {
    /// Parse lines of `user:password`. Empty lines are skipped. An error names the line.
    pub fn parse(text: &str) -> Result<Accounts, String> {
        let mut accounts = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let (user, password) = line
                .split_once(':')
                .filter(|(user, _)| !user.is_empty())
                .ok_or_else(|| format!("line {}: write user:password", index + 1))?;
            accounts.push((user.as_bytes().to_vec(), password.as_bytes().to_vec()));
        }
        if accounts.is_empty() {
            return Err("no users: write lines of user:password".to_owned());
        }
        Ok(Accounts(accounts))
    }

    /// Whether this is a user with this password. The time does not depend on how much of it is right.
    pub fn allow(&self, user: &[u8], password: &[u8]) -> bool {
        self.0.iter().fold(false, |found, (known, secret)| {
            found | (equal(known, user) & equal(secret, password))
        })
    }

    /// Whether a SASL PLAIN message (RFC 4616: authorization, user, password, separated by NUL) names a user
    /// with its password.
    pub fn allow_plain(&self, message: &[u8]) -> bool {
        let mut parts = message.splitn(3, |byte| *byte == 0);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(_), Some(user), Some(password)) => self.allow(user, password),
            _ => false,
        }
    }
}

/// Compare in a time that depends on the lengths only.
fn equal(a: &[u8], b: &[u8]) -> bool {
    let different = a.iter().zip(b).fold(0, |different, (a, b)| different | (a ^ b));
    (a.len() == b.len()) & (different == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_users() {
        let accounts = Accounts::parse("ann:secret\n\nbob:with:colon\n").expect("accounts");
        assert!(accounts.allow(b"ann", b"secret") && accounts.allow(b"bob", b"with:colon"));
        for (user, password) in [("ann", "secre"), ("ann", ""), ("", ""), ("bob", "secret")] {
            assert!(!accounts.allow(user.as_bytes(), password.as_bytes()), "{user} {password}");
        }
        assert!(
            accounts.allow_plain(b"\0ann\0secret") && accounts.allow_plain(b"ann\0ann\0secret")
        );
        for message in [&b""[..], b"\0", b"\0ann", b"\0ann\0", b"ann\0secret", b"\0ann\0secret\0"] {
            assert!(!accounts.allow_plain(message), "{}", message.escape_ascii());
        }
    }

    #[test]
    fn a_bad_file_is_an_error() {
        assert_eq!(
            Accounts::parse("a:b\nc\n").expect_err("a bad line"),
            "line 2: write user:password"
        );
        assert!(Accounts::parse("\n").expect_err("nobody").starts_with("no users"));
    }
}
