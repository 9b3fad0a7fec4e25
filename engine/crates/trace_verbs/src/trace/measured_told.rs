//! The measured rates of a server, in words.

use cachemark_fleet::Scalability;

use super::measured::{MeasuredRates, RateOfKind};
use super::told::{Section, count_of, known, number, seconds};

pub(super) fn section(of: &MeasuredRates) -> Section {
    let rows = of.points.iter().map(|point| {
        let law = of.callers_laws.iter().find(|law| law.threads == point.threads);
        vec![
            point.threads.to_string(),
            point.callers.to_string(),
            rate(point.rate),
            known(point.low.zip(point.high), |(low, high)| {
                format!("{}–{}", number(low), number(high))
            }),
            known(law, |law| rate(law.law.rate(f64::from(point.callers)).rate)),
            known(of.threads_law.as_ref(), |law| rate(law.rate(f64::from(point.threads)).rate)),
            known(point.service_us, |us| seconds(us / 1e6)),
        ]
    });
    let mut notes = vec![source(of)];
    notes.extend(of.kinds.iter().map(used));
    notes.extend(of.threads_law.as_ref().map(|law| told_law("threads", law)));
    notes.extend(of.callers_laws.iter().map(|of| {
        told_law(&format!("callers of {}", count_of(of.threads as usize, "thread")), &of.law)
    }));
    Section {
        title: "The rate of a server, measured",
        columns: vec![
            "threads",
            "callers",
            "measured",
            "interval",
            "law, callers",
            "law, threads",
            "CPU time",
        ],
        rows: rows.collect(),
        notes,
        prose: false,
    }
}

fn rate(value: f64) -> String {
    format!("{}/s", number(value))
}

fn source(of: &MeasuredRates) -> String {
    let what = if of.objective.is_empty() {
        "closed loops: a peak, with no bound on response times".to_owned()
    } else {
        format!("the highest rates with {}", of.objective)
    };
    format!("From run {}: {what}. CPU time is the server's for a request.", of.run)
}

fn used(of: &RateOfKind) -> String {
    let by = if of.by_law { "by the law over threads" } else { "as measured" };
    let low = match (of.low, of.servers_if_low) {
        (Some(low), Some(servers)) => {
            format!("; at {}, the low end, {} by rate", rate(low), count_of(servers, "server"))
        }
        (Some(low), None) => format!("; the low end is {}", rate(low)),
        (None, _) => "; its error is not known".to_owned(),
    };
    format!(
        "{}, {}: {}, {by}{low}.",
        of.kind,
        count_of(of.threads as usize, "thread"),
        rate(of.rate)
    )
}

fn told_law(of: &str, law: &Scalability) -> String {
    let peak = known(law.peak(), |peak| format!("at {peak:.1}"));
    format!(
        "Universal scalability law over {of}: λ {}, σ {:.4}, κ {:.6}; peak {peak}.",
        rate(law.one),
        law.contention,
        law.coherence
    )
}
