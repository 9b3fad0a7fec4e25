//! An option of `-o`.

use crate::memcached::configuration::Configuration;

/// What an extended option takes.
pub enum Takes {
    Nothing(fn(&mut Configuration)),
    /// A value; the first message is for none, the second for a wrong one, which makes the function return false.
    Value(&'static str, &'static str, fn(&str, &mut Configuration) -> bool),
    /// A value that may be wrong in several ways, of which the function names one; the message is for none.
    Checked(&'static str, fn(&str, &mut Configuration) -> Result<(), String>),
    /// A value, or none.
    Optional(&'static str, fn(Option<&str>, &mut Configuration) -> bool),
}

pub struct Extended {
    pub name: &'static str,
    pub works: bool,
    pub takes: Takes,
}

pub const fn works(name: &'static str, takes: Takes) -> Extended {
    Extended { name, works: true, takes }
}

pub const fn ignored(name: &'static str, takes: Takes) -> Extended {
    Extended { name, works: false, takes }
}
