//! Properties of every ring.

use cachemark_fleet::{Placement, Ring};
use proptest::prelude::*;

fn names(servers: usize) -> Vec<String> {
    (0..servers).map(|number| format!("10.1.2.{number}:11211")).collect()
}

fn placement() -> impl Strategy<Value = Placement> {
    prop::sample::select(Placement::ALL.to_vec())
}

proptest! {
    #[test]
    fn each_key_has_a_server_that_is_there(
        placement in placement(), servers in 1..40usize, key in "[a-z:]{1,40}", draw in 0..5u32,
    ) {
        let names = names(servers);
        let point = placement.point(key.as_bytes(), draw);
        prop_assert!(Ring::new(placement, &names).server_of(point) < servers);
        for lost in 0..servers.min(3) {
            if servers > 1 {
                let server = Ring::without(placement, &names, lost).server_of(point);
                prop_assert!(server < servers && server != lost);
            }
        }
    }

    #[test]
    fn rings_move_only_keys_of_the_lost_server(servers in 2..20usize, key in "[a-z]{1,20}") {
        let names = names(servers);
        for placement in [Placement::Ketama, Placement::LibmemcachedKetama, Placement::Dalli] {
            let point = placement.point(key.as_bytes(), 0);
            let before = Ring::new(placement, &names).server_of(point);
            for lost in (0..servers).filter(|lost| *lost != before).take(2) {
                let after = Ring::without(placement, &names, lost).server_of(point);
                prop_assert_eq!(after, before, "{:?}", placement);
            }
        }
    }

    #[test]
    fn jump_moves_keys_only_to_a_new_server(servers in 1..60usize, key in "[a-z]{1,20}") {
        let point = Placement::Jump.point(key.as_bytes(), 0);
        let before = Ring::new(Placement::Jump, &names(servers)).server_of(point);
        let after = Ring::new(Placement::Jump, &names(servers + 1)).server_of(point);
        prop_assert!(after == before || after == servers);
    }
}

#[test]
fn jump_is_the_published_one() {
    // The values that other implementations are tested with: the buckets of keys 0 to 9 of 100.
    let ring = Ring::new(Placement::Jump, &names(100));
    let buckets: Vec<usize> = (0..10).map(|key| ring.server_of(key)).collect();
    assert_eq!(buckets, [0, 55, 62, 8, 45, 59, 86, 97, 82, 59]);
}
