//! Requests as a server reads them.
