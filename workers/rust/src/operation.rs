//! A record of the tape as an operation, and the verbs and kinds.

/// A verb of the tape, by its number there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Verb(pub u8);

macro_rules! verbs {
    ($($name:ident = $number:literal $text:literal),*) => {
        impl Verb { $(pub const $name: Verb = Verb($number);)* }
        const NAMES: &[(u8, &str)] = &[$(($number, $text)),*];
    };
}
verbs!(GET = 1 "get", GETS = 2 "gets", MGET = 3 "mget", SET = 4 "set", ADD = 5 "add",
    REPLACE = 6 "replace", DELETE = 7 "delete", TOUCH = 8 "touch", GAT = 9 "gat",
    VERSION = 10 "version", MSET = 11 "mset", CAS = 14 "cas", INCR = 15 "incr", DECR = 16 "decr");

impl Verb {
    /// Whether it is one of these verbs.
    pub fn is(self, verbs: &[Verb]) -> bool {
        verbs.contains(&self)
    }

    /// Whether the tape's format has this verb.
    pub fn is_known(self) -> bool {
        NAMES.iter().any(|(number, _)| *number == self.0)
    }
}

/// An operation's kind: twice its verb's number, plus 1 without a reply.
pub type Kind = usize;
/// There are fewer kinds than this.
pub const KINDS: Kind = 34;

/// The name of a kind in messages.
pub fn kind_name(kind: Kind) -> String {
    let name = NAMES.iter().find(|(number, _)| usize::from(*number) == kind / 2);
    format!("{}{}", name.expect("a kind").1, if kind % 2 == 1 { "_noreply" } else { "" })
}

/// One record, with all arguments of its call.
pub struct Operation {
    pub verb: Verb,
    pub kind: Kind,
    /// The record's number.
    pub number: usize,
    pub keys: &'static [&'static str],
    /// Keys with their values, of an `mset`.
    pub pairs: &'static [(&'static str, &'static [u8])],
    pub indexes: &'static [u32],
    /// The value to write, or that a read must bring.
    pub value: &'static [u8],
    pub amount: u64,
    pub exptime_s: u32,
    pub key_bytes: u64,
    /// The generation of a write, or for a read of the lane's last write of the key before it.
    pub generation: u8,
}

impl Operation {
    /// Its only key.
    pub fn key(&self) -> &'static str {
        self.keys[0]
    }
}
