//! The users of a server: a file of users and passwords, in the form of memcached's `-Y`.

use crate::state::cram_md5;

/// The users of an auth file.
#[derive(Debug)]
pub struct Accounts {
    users: Vec<(Vec<u8>, Vec<u8>)>,
    /// In SASL, the realm of names without one: the name of this machine, as memcached has it.
    realm: Vec<u8>,
}

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
        let realm = rustix::system::uname().nodename().to_bytes().to_vec();
        Ok(Accounts { users: accounts, realm })
    }

    /// Whether this is a user with this password. The time does not depend on how much of it is right.
    pub fn allow(&self, user: &[u8], password: &[u8]) -> bool {
        self.users.iter().fold(false, |found, (known, secret)| {
            found | (equal(known, user) & equal(secret, password))
        })
    }

    /// The same for a user of SASL, whose name may be `user@realm`.
    fn allow_in_realm(&self, user: &[u8], is_right: impl Fn(&[u8]) -> bool) -> bool {
        let user = self.with_realm(user);
        self.users.iter().fold(false, |found, (known, secret)| {
            found | (equal(&self.with_realm(known), &user) & is_right(secret))
        })
    }

    fn with_realm(&self, user: &[u8]) -> Vec<u8> {
        match user.contains(&b'@') {
            true => user.to_vec(),
            false => [user, b"@", &self.realm].concat(),
        }
    }

    /// Whether a SASL PLAIN message (RFC 4616: authorization, user, password, separated by NUL) names a user
    /// with its password.
    pub fn allow_plain(&self, message: &[u8]) -> bool {
        let mut parts = message.splitn(3, |byte| *byte == 0);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(_), Some(user), Some(password)) => {
                self.allow_in_realm(user, |secret| equal(secret, password))
            }
            _ => false,
        }
    }

    /// Whether a message answers a challenge of CRAM-MD5 (RFC 2195: user, space, digest) as a user with its password
    /// does.
    pub fn allow_cram_md5(&self, challenge: &[u8], message: &[u8]) -> bool {
        let Some(space) = message.iter().rposition(|byte| *byte == b' ') else { return false };
        let (user, digest) = (&message[..space], &message[space + 1..]);
        self.allow_in_realm(user, |secret| cram_md5::is_digest(digest, secret, challenge))
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
    fn a_realm_of_sasl_may_be_named() {
        let accounts = Accounts::parse("ann:s\ncat@sales:s\n").expect("accounts");
        let here = String::from_utf8_lossy(&accounts.realm).into_owned();
        let allowed = |user: &str| accounts.allow_plain(format!("\0{user}\0s").as_bytes());
        assert!(allowed("ann") && allowed(&format!("ann@{here}")) && allowed("cat@sales"));
        for user in ["ann@sales", "cat", "cat@else", &format!("cat@{here}"), "ann@", "@sales"] {
            assert!(!allowed(user), "{user}");
        }
    }

    #[test]
    fn a_challenge_is_answered_with_the_password() {
        // The example of RFC 2195.
        let accounts = Accounts::parse("tim:tanstaaftanstaaf\n").expect("accounts");
        let challenge = b"<1896.697170952@postoffice.reston.mci.net>";
        let right = b"tim b913a602c7eda7a495b4e6e7334d3890";
        assert!(accounts.allow_cram_md5(challenge, right));
        assert!(!accounts.allow_cram_md5(b"<1@x>", right));
        for wrong in [&right[..35], b"tom b913a602c7eda7a495b4e6e7334d3890", b"tim ", b"tim", b""] {
            assert!(!accounts.allow_cram_md5(challenge, wrong), "{}", wrong.escape_ascii());
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
