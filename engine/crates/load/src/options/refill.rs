//! When the next operations of a closed loop begin, with a depth above 1.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refill {
    /// The next operation begins when one has ended.
    #[default]
    Each,
    /// The next operations begin when all outstanding ones of their channel have ended.
    All,
}

impl std::str::FromStr for Refill {
    type Err = String;

    fn from_str(name: &str) -> Result<Refill, String> {
        match name {
            "each" => Ok(Refill::Each),
            "all" => Ok(Refill::All),
            _ => Err(format!("refill {name:?}: write each or all")),
        }
    }
}
