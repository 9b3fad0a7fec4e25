//! The closed formulas beside plays of a trace through simulated servers.

use std::collections::HashSet;

use crate::common::{Asked, MIB, curve, get, gets, played, population, setting, traffic};
use cachemark_fleet::{
    Demand, KeyTraffic, Limit, LossCase, Placement, Ring, ServerKind, Shares, count_servers,
};

const PLACEMENTS: [Placement; 4] =
    [Placement::Modulo, Placement::Ketama, Placement::Dalli, Placement::Jump];

fn names(servers: usize) -> Vec<String> {
    (0..servers).map(|number| format!("server-{number}:11211")).collect()
}

fn kind(memory_bytes: u64, rate: f64) -> ServerKind {
    ServerKind {
        name: "small".to_owned(),
        memory_bytes,
        rate: Some(rate),
        threads: 4,
        service_s: None,
        service_cv2: 1.0,
        network_bytes_per_s: None,
        connections: None,
        price: None,
        number: None,
    }
}

fn demand(misses: Option<f64>, requests_per_s: f64) -> Demand {
    Demand { misses, requests_per_s, bytes_per_request: 100.0, used_part: 0.5, connections: 0 }
}

#[test]
fn a_fleet_misses_as_the_formula_says() {
    // Items of 1 KiB, and room for about a fifth of them.
    let trace = gets(0.8, 20_000, 200_000, 900);
    let sizes: Vec<u64> = (1..=40).map(|pages| pages * MIB).collect();
    let curve = curve(&trace, &sizes);
    let keys = traffic(&trace, 1.0);
    for placement in PLACEMENTS {
        for servers in [1, 2, 5] {
            let memory = 6 * MIB / servers as u64 / MIB * MIB;
            let points: Vec<u64> = keys.iter().map(|of| placement.point(&of.key, 0)).collect();
            let ring = Ring::new(placement, &names(servers));
            let shares = Shares::of(&ring, servers, &keys, &points);
            let formula = curve.fleet_misses(memory as f64, &shares.memory, &shares.requests);
            // LRU beside LRU: a little less than all keys are followed, and no key is hot.
            let mut lru = setting(placement, servers, memory);
            lru.part = 0.999_999;
            let played_lru = played(&trace, lru).before.misses.value;
            assert!(
                (formula - played_lru).abs() < 0.015,
                "{placement:?} {servers}: {formula} {played_lru}"
            );
        }
    }
}

#[test]
fn a_part_of_the_keys_plays_as_all_of_them() {
    let trace = gets(0.9, 60_000, 300_000, 900);
    let mut of = setting(Placement::Ketama, 4, 4 * MIB);
    of.part = 0.999_999;
    let all = played(&trace, of.clone());
    of.part = 0.2;
    let part = played(&trace, of);
    let error = part.before.misses.error;
    assert!(error > 0.0);
    let difference = (all.before.misses.value - part.before.misses.value).abs();
    assert!(difference < 4.0 * error + 0.02, "{difference} {error}");
    assert!((all.before.hottest - part.before.hottest).abs() < 0.1);
}

/// The share of the reads of a lost server that are the first of their key since then, and the same of all reads.
fn first_reads(trace: &[Asked], of_server: impl Fn(&str) -> bool) -> (usize, usize) {
    let begin = trace.len() * 6 / 10;
    let begins_s = trace[begin].request.at_s;
    let minute = trace[begin..].iter().take_while(|asked| asked.request.at_s < begins_s + 60);
    let (mut seen, mut reads, mut first) = (HashSet::new(), 0, 0);
    let before: HashSet<&str> = trace[..begin].iter().map(|asked| &*asked.key).collect();
    for asked in minute {
        reads += 1;
        let is_known = before.contains(&*asked.key);
        first += usize::from(of_server(&asked.key) && seen.insert(&asked.key) && is_known);
    }
    (first, reads)
}

#[test]
fn a_loss_costs_each_key_its_first_read() {
    // All items have room: nothing else misses than what was never read.
    let trace = gets(0.9, 5000, 200_000, 100);
    for placement in PLACEMENTS {
        let of = played(&trace, setting(placement, 4, 64 * MIB));
        let loss = of.loss.expect("a loss");
        let ring = Ring::new(placement, &names(4));
        let point = |key: &str| placement.point(key.as_bytes(), 0);
        let misses = |wanted: LossCase| {
            let found = loss.cases.iter().find(|(case, _)| *case == wanted);
            found.unwrap().1.misses.value
        };
        let whole = misses(LossCase::Nothing);
        let (first, reads) = first_reads(&trace, |key| ring.server_of(point(key)) == loss.server);
        let gutter = whole + first as f64 / reads as f64;
        assert!((misses(LossCase::Gutter) - gutter).abs() < 1e-9, "{placement:?}");
        let rest = Ring::without(placement, &names(4), loss.server);
        let (moved, _) =
            first_reads(&trace, |key| ring.server_of(point(key)) != rest.server_of(point(key)));
        let dropped = whole + moved as f64 / reads as f64;
        assert!((misses(LossCase::Dropped) - dropped).abs() < 1e-9, "{placement:?}");
        let has_ring = [Placement::Ketama, Placement::Dalli].contains(&placement);
        assert!(!has_ring || moved == first);
        assert!(placement != Placement::Modulo || moved > 2 * first);
        // Where requests fail, each read of the lost server is one.
        assert!((misses(LossCase::Failing) - whole - loss.part).abs() < 0.02);
        assert_eq!((loss.seconds, loss.reads_per_s), (60, 1000.0));
    }
}

#[test]
fn nothing_is_lost_where_nothing_can_be() {
    let trace = gets(0.9, 500, 5000, 100);
    assert_eq!(played(&trace, setting(Placement::Ketama, 1, MIB)).loss, None);
    let untimed: Vec<Asked> = (0..5000).map(|key| get(key % 100, 0, 100)).collect();
    assert_eq!(played(&untimed, setting(Placement::Ketama, 3, MIB)).loss, None);
}

#[test]
fn short_lives_in_the_gutter_cost_more_misses() {
    let trace = gets(0.9, 2000, 200_000, 100);
    let misses = |ttl_s: u32| {
        let mut of = setting(Placement::Ketama, 4, 64 * MIB);
        of.gutter_ttl_s = ttl_s;
        let cases = played(&trace, of).loss.unwrap().cases;
        cases.iter().find(|(case, _)| *case == LossCase::Gutter).unwrap().1.misses.value
    };
    let found = [2, 10, 1000].map(misses);
    assert!(found[0] > found[1] && found[1] > found[2], "{found:?}");
}

#[test]
fn ketama_spreads_as_its_points_say() {
    // A part of n · v points chosen at random: its standard deviation is about 1/√v of the mean.
    let names = names(50);
    let ring = Ring::new(Placement::Ketama, &names);
    let mut parts = [0.0; 50];
    for step in 0..1u64 << 18 {
        parts[ring.server_of(step << 14)] += 50.0 / (1u64 << 18) as f64;
    }
    let variance = parts.iter().map(|part| (part - 1.0f64).powi(2)).sum::<f64>() / 50.0;
    let expected = 1.0 / 160f64.sqrt();
    assert!((variance.sqrt() / expected - 1.0).abs() < 0.4, "{}", variance.sqrt());
}

/// The largest part of the requests, in a draw; without the server that had it, if that is lost.
fn hottest(
    placement: Placement,
    servers: usize,
    draw: u32,
    is_lost: bool,
    keys: &[KeyTraffic],
) -> f64 {
    let names = names(servers);
    let points: Vec<u64> = keys.iter().map(|of| placement.point(&of.key, draw)).collect();
    let parts = |ring: &Ring| Shares::of(ring, servers, keys, &points).requests;
    let whole = parts(&Ring::new(placement, &names));
    let largest = |parts: &[f64]| parts.iter().copied().fold(0.0, f64::max);
    let place = whole.iter().position(|part| *part == largest(&whole)).unwrap();
    if is_lost {
        largest(&parts(&Ring::without(placement, &names, place)))
    } else {
        largest(&whole)
    }
}

#[test]
fn the_count_is_the_smallest_that_holds() {
    let trace = gets(0.7, 20_000, 100_000, 900);
    let keys = traffic(&trace, 1.0);
    let sizes: Vec<u64> = (1..=40).map(|pages| pages * MIB).collect();
    let curve = curve(&trace, &sizes);
    let goal = curve.misses(16.0 * MIB as f64);
    let (kind, demand) = (kind(2 * MIB, 1000.0), demand(Some(goal), 4000.0));
    for placement in PLACEMENTS {
        let found = &count_servers(
            std::slice::from_ref(&kind),
            &demand,
            &curve,
            (placement, &[]),
            (&keys, false),
        )[0];
        let of = |limit: Limit| {
            found.limits.iter().find(|each| each.limit == limit).unwrap().servers.unwrap()
        };
        let (memory, rate, loss) = (of(Limit::Memory), of(Limit::Rate), of(Limit::Loss));
        // 16 MiB in parts of 2, and 4,000 at half of 1,000 each: a little more, as parts are not even.
        assert!(memory >= 8 && rate >= 8 && loss >= 5, "{placement:?} {found:?}");
        let worst = |servers: usize, is_lost: bool| {
            (1..=20)
                .map(|draw| hottest(placement, servers, draw, is_lost, &keys))
                .fold(0.0, f64::max)
        };
        assert!(4000.0 * worst(rate, false) <= 500.0 && 4000.0 * worst(rate - 1, false) > 500.0);
        assert!(4000.0 * worst(loss, true) <= 1000.0 && 4000.0 * worst(loss - 1, true) > 1000.0);
        let servers = found.servers.unwrap();
        assert_eq!(Some(servers), found.needed);
        assert_eq!(servers, of(Limit::Memory).max(of(Limit::Rate)));
        let spread = found.hottest.unwrap();
        assert!(spread.worst * 4000.0 / servers as f64 <= 500.0);
        assert!(found.misses.unwrap() <= goal);
        assert!(spread.median <= spread.worst && spread.median >= 1.0);
    }
}

#[test]
fn a_hot_key_limits_any_fleet() {
    let mut trace: Vec<Asked> =
        (0..50_000).map(|key| get(key % 1000, key as u32 / 1000, 50)).collect();
    for asked in trace.iter_mut().step_by(4) {
        *asked = get(7, asked.request.at_s, 50);
    }
    let keys = traffic(&trace, 1.0);
    let curve = curve(&trace, &[MIB]);
    let counted = |rate: f64| {
        let kinds = [kind(MIB, rate)];
        count_servers(&kinds, &demand(None, 4000.0), &curve, (Placement::Jump, &[]), (&keys, false))
            .remove(0)
    };
    // A quarter of 4,000 requests a second, and a little more, at half of the rate.
    assert_eq!(counted(1900.0).needed, None);
    assert!(counted(2300.0).needed.is_some());
    let most = counted(2300.0).hot_key_rate.unwrap();
    assert!((most / (2300.0 * 0.5 * 4.0) - 1.0).abs() < 0.02, "{most}");
}

#[test]
fn real_keys_on_real_addresses_have_one_place() {
    let trace = gets(0.9, 3000, 20_000, 100);
    let keys = traffic(&trace, 1.0);
    let curve = curve(&trace, &[MIB]);
    let addresses: Vec<String> = (0..3).map(|n| format!("10.0.0.{n}:11211")).collect();
    let mut kind = kind(MIB, 1e6);
    kind.number = Some(3);
    let hottest = |are_real: bool| {
        let ring = (Placement::Ketama, &addresses[..]);
        count_servers(&[kind.clone()], &demand(None, 1.0), &curve, ring, (&keys, are_real))[0]
            .hottest
            .unwrap()
    };
    assert_eq!(hottest(true).median, hottest(true).worst);
    assert!(hottest(false).median < hottest(false).worst);
    let points: Vec<u64> = keys.iter().map(|of| Placement::Ketama.point(&of.key, 0)).collect();
    let shares = Shares::of(&Ring::new(Placement::Ketama, &addresses), 3, &keys, &points);
    let largest = shares.requests.iter().copied().fold(0.0, f64::max) * 3.0;
    assert!((hottest(true).worst - largest).abs() < 1e-9);
    assert_eq!(population(&trace).requests, 20_000);
}
