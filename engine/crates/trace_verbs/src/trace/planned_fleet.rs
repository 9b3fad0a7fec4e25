//! The figures of a fleet that a trace needs.

use cachemark_fleet::{Count, Placement, Played};
use cachemark_trace::file::{Origin, Summary};
use serde::Serialize;

use super::measured::MeasuredRates;

/// The share of reads that miss, by memory in bytes.
pub(super) type Curve = Vec<(u64, f64)>;

/// A trace, and the fleet that it needs.
#[derive(Serialize)]
pub(super) struct PlannedFleet {
    pub origin: Origin,
    pub summary: Summary,
    pub requests: u64,
    pub keys: f64,
    pub duration_s: f64,
    /// The keys of the clients on their own servers; else many other keys take their place.
    pub are_real: bool,
    pub ring: Placement,
    pub demand: ToldDemand,
    pub warm_up: f64,
    /// By memory of all servers in bytes.
    pub curve: Curve,
    pub counts: Vec<Count>,
    /// Of a run whose rates were used.
    pub rates: Option<MeasuredRates>,
    /// The kind that is played, by its place.
    pub chosen: Option<usize>,
    /// The memory of all its servers.
    pub fleet_bytes: Option<u64>,
    pub played: Option<Played>,
    pub gutter_servers: usize,
    pub gutter_ttl_s: u32,
}

#[derive(Serialize)]
pub(super) struct ToldDemand {
    pub hit_ratio: Option<f64>,
    /// Of the busiest ten seconds of the trace, if it has times.
    pub trace_rate: Option<f64>,
    pub requests_per_s: f64,
    pub bytes_per_request: f64,
    pub used_part: f64,
    pub growth: f64,
    pub connections: u64,
}

impl PlannedFleet {
    /// The kind that is played.
    pub(super) fn chosen(&self) -> Option<&Count> {
        self.counts.get(self.chosen?)
    }
}
