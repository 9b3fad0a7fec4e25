//! What a client may read in place of the reply that it expects, in any protocol.

/// Whose fault an error reply says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    Client,
    Server,
}

/// Bytes that are no reply: the stream cannot be read any further.
#[derive(Debug, PartialEq, Eq)]
pub struct Violation;

/// Whose fault a line says it is; `None` if it is no error.
pub(crate) fn error_line(line: &[u8]) -> Option<ErrorKind> {
    match line {
        b"ERROR" => Some(ErrorKind::Client),
        _ if line.starts_with(b"CLIENT_ERROR ") => Some(ErrorKind::Client),
        _ if line.starts_with(b"SERVER_ERROR ") => Some(ErrorKind::Server),
        _ => None,
    }
}
