//! CRAM-MD5 (RFC 2195): a login that does not send the password.

use hmac::{Hmac, Mac};
use md5::Md5;

/// A challenge that no client can foresee.
pub fn challenge() -> Vec<u8> {
    let mut random = [0; 16];
    let filled = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    assert_eq!(filled, Ok(random.len()), "the kernel gives so few random bytes at once");
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    format!("<{:x}@{host}>", u128::from_ne_bytes(random)).into_bytes()
}

/// Whether these are the hexadecimal digits of the digest of a challenge by this password. The time does not depend on
/// how much of it is right.
pub fn is_digest(digits: &[u8], secret: &[u8], challenge: &[u8]) -> bool {
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    let byte = |pair: &[u8]| Some((digit(&pair[0])? << 4 | digit(pair.get(1)?)?) as u8);
    let digest: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    let Ok(hmac) = Hmac::<Md5>::new_from_slice(secret) else { return false };
    digest.is_some_and(|digest| hmac.chain_update(challenge).verify_slice(&digest).is_ok())
}
