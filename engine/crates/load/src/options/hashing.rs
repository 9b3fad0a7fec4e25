//! How the server of a key is found.

/// How keys are spread over servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hashing {
    /// A hash of the key, modulo the number of servers: Jenkins' one-at-a-time, as libmemcached has it.
    #[default]
    Modulo,
    /// Consistent: 160 points of each server on a ring, from MD5, as libketama has them.
    Ketama,
}
