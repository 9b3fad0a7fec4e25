//! An option of `-o`.

use crate::memcached::configuration::Configuration;

/// The value that an extended option takes.
pub enum Takes {
    Nothing(fn(&mut Configuration)),
    /// A value; the first message is for none, the second for a wrong one, which makes the function return false.
    Value(&'static str, &'static str, fn(&str, &mut Configuration) -> bool),
    /// A value that may be wrong in several ways, of which the function names one; the message is for none.
    Checked(&'static str, fn(&str, &mut Configuration) -> Result<(), String>),
    /// Nothing that would be accepted.
    Refused(&'static str),
    /// A value, or none.
    Optional(&'static str, fn(Option<&str>, &mut Configuration) -> bool),
}

/// The change that an option makes here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Works,
    /// It names what this server does in any case.
    Always,
    /// It tunes what this server has not.
    Nothing,
}

pub struct Extended {
    pub name: &'static str,
    pub effect: Effect,
    pub takes: Takes,
}

pub const fn works(name: &'static str, takes: Takes) -> Extended {
    Extended { name, effect: Effect::Works, takes }
}

pub const fn always(name: &'static str) -> Extended {
    Extended { name, effect: Effect::Always, takes: Takes::Nothing(|_| ()) }
}

pub const fn ignored(name: &'static str, takes: Takes) -> Extended {
    Extended { name, effect: Effect::Nothing, takes }
}

/// An option whose promise this server would not keep; the message says what to do.
pub const fn refused(name: &'static str, message: &'static str) -> Extended {
    Extended { name, effect: Effect::Nothing, takes: Takes::Refused(message) }
}
