//! Error replies and invalid replies, of all protocols.

/// Whether an error reply blames the client or the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    Client,
    Server,
}

/// Bytes that are no valid reply. The rest of the stream cannot be parsed.
#[derive(Debug, PartialEq, Eq)]
pub struct Violation;

/// The kind of an error line; `None` if the line is no error.
pub(crate) fn error_line(line: &[u8]) -> Option<ErrorKind> {
    match line {
        b"ERROR" => Some(ErrorKind::Client),
        _ if line.starts_with(b"CLIENT_ERROR ") => Some(ErrorKind::Client),
        _ if line.starts_with(b"SERVER_ERROR ") => Some(ErrorKind::Server),
        _ => None,
    }
}
