//! An approach to an expiry, and the results of its callers.

use serde::Serialize;

use crate::stampede::episodes::Summary;

/// The way of a caller when the item has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Approach {
    /// `mg k v`: every caller that misses refills
    Plain,
    /// `mg k v N`: the first miss wins; the others wait until the winner has refilled
    Win,
    /// `mg k v N R`: one caller wins before the expiry; the others get the old value meanwhile
    Stale,
}

#[derive(Serialize)]
pub struct Played {
    pub approach: Approach,
    #[serde(flatten)]
    pub summary: Summary,
}
