//! The login on servers that require one: once per connection, before the measurement.

use std::io::{self, Read, Write};

use cachemark_protocol::binary::client::{self as binary_client, Answer};
use cachemark_protocol::reply_errors::Violation;
use cachemark_protocol::text::encode::{self, LineEnd};
use cachemark_protocol::text::reply::{Reply, parse};

use crate::options::{Credentials, WireName};

/// The answer is a line or a short packet: longer bytes are neither.
const ANSWER_BYTES_MAX: usize = 4096;

/// Send user and password, and wait for the answer. The stream blocks, up to a timeout.
///
/// Text and meta protocol: memcached's `-Y` login, a `set` whose value is user and password. Binary
/// protocol: SASL PLAIN.
pub(crate) fn authenticate(
    stream: &mut (impl Read + Write),
    wire: WireName,
    who: &Credentials,
) -> io::Result<()> {
    let (mut request, mut reply, mut buffer) = (Vec::new(), Vec::new(), [0; 512]);
    if wire == WireName::Binary {
        binary_client::sasl_plain(&mut request, who.user.as_bytes(), who.password.as_bytes());
    } else {
        let words = format!("{} {}", who.user, who.password);
        encode::store(&mut request, "set", b"auth", 0, words.as_bytes(), LineEnd::Plain);
    }
    stream.write_all(&request)?;
    stream.flush()?;
    loop {
        let answered = match wire {
            WireName::Binary => sasl_answer(&reply),
            WireName::Text | WireName::Meta => text_answer(&reply),
        };
        match answered {
            Ok(None) if reply.len() <= ANSWER_BYTES_MAX => {}
            Ok(Some(true)) => return Ok(()),
            Ok(Some(false)) => {
                let text = format!("the server rejects the login of {:?}", who.user);
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
            }
            Ok(None) | Err(Violation) => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the reply to the login is not valid",
                ));
            }
        }
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => reply.extend_from_slice(&buffer[..bytes]),
        }
    }
}

fn text_answer(bytes: &[u8]) -> Result<Option<bool>, Violation> {
    Ok(parse(bytes)?.map(|(reply, _)| reply == Reply::Stored))
}

fn sasl_answer(bytes: &[u8]) -> Result<Option<bool>, Violation> {
    Ok(binary_client::parse(bytes)?.map(|(reply, _)| reply.answer == Answer::Done))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers with the given bytes, one byte per read, and keeps what was written.
    struct ScriptedStream<'a>(&'a [u8], Vec<u8>);

    impl Read for ScriptedStream<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut into[..1])
        }
    }

    impl Write for ScriptedStream<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn login(wire: WireName, answer: &[u8]) -> (Option<io::ErrorKind>, Vec<u8>) {
        let who = Credentials { user: "ann".to_owned(), password: "x y".to_owned() };
        let mut stream = ScriptedStream(answer, Vec::new());
        (authenticate(&mut stream, wire, &who).err().map(|error| error.kind()), stream.1)
    }

    #[test]
    fn text_logs_in_with_a_set() {
        let said = b"set auth 0 0 7\r\nann x y\r\n".to_vec();
        assert_eq!(login(WireName::Text, b"STORED\r\n"), (None, said));
        let refused = login(WireName::Meta, b"CLIENT_ERROR authentication failure\r\n").0;
        assert_eq!(refused, Some(io::ErrorKind::PermissionDenied));
        assert_eq!(login(WireName::Text, b"STO").0, Some(io::ErrorKind::UnexpectedEof));
    }

    #[test]
    fn an_answer_without_end_is_not_kept() {
        let long = [&b"VALUE k 0 4000000000\r\n"[..], &[b'x'; 2 * ANSWER_BYTES_MAX]].concat();
        assert_eq!(login(WireName::Text, &long).0, Some(io::ErrorKind::InvalidData));
        let mut packet = [0; 2 * ANSWER_BYTES_MAX];
        packet[..2].copy_from_slice(&[0x81, 0x21]);
        packet[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(login(WireName::Binary, &packet).0, Some(io::ErrorKind::InvalidData));
    }

    #[test]
    fn binary_logs_in_with_sasl() {
        let mut reply = [0; 24];
        reply[..2].copy_from_slice(&[0x81, 0x21]);
        let (failure, said) = login(WireName::Binary, &reply);
        assert_eq!((failure, &said[24..]), (None, &b"PLAIN\0ann\0x y"[..]));
        reply[7] = 0x20;
        assert_eq!(login(WireName::Binary, &reply).0, Some(io::ErrorKind::PermissionDenied));
        let garbage = login(WireName::Binary, b"STORED\r\n").0;
        assert_eq!(garbage, Some(io::ErrorKind::InvalidData));
    }
}
