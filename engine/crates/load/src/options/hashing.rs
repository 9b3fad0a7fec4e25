//! How a client chooses the server of a key.

/// How keys are distributed over servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hashing {
    /// A hash of the key, modulo the number of servers: Jenkins' one-at-a-time, as in libmemcached.
    #[default]
    Modulo,
    /// Consistent hashing: 160 points per server on a ring, from MD5, as in libketama.
    Ketama,
}
