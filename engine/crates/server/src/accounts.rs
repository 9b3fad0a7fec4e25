//! Who may use the server: users and passwords of a file, as memcached's `-Y` reads it.

/// The users of an auth file.
#[derive(Debug)]
pub struct Accounts(Vec<(Vec<u8>, Vec<u8>)>);

impl Accounts {
    /// Lines of `user:password`; empty ones are skipped. The error names the line.
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

    /// Whether this is a user with this password. It takes as long for a wrong one as for a right
    /// one of that length.
    pub fn allow(&self, user: &[u8], password: &[u8]) -> bool {
        self.0.iter().fold(false, |found, (known, secret)| {
            found | (same(known, user) & same(secret, password))
        })
    }

    /// Whether a SASL PLAIN message (RFC 4616: authorization, user, password, NUL between them)
    /// names a user.
    pub fn allow_plain(&self, message: &[u8]) -> bool {
        let mut parts = message.splitn(3, |byte| *byte == 0);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(_), Some(user), Some(password)) => self.allow(user, password),
            _ => false,
        }
    }
}

fn same(a: &[u8], b: &[u8]) -> bool {
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
    fn a_bad_file_is_told() {
        assert_eq!(
            Accounts::parse("a:b\nc\n").expect_err("a bad line"),
            "line 2: write user:password"
        );
        assert!(Accounts::parse("\n").expect_err("nobody").starts_with("no users"));
    }
}
