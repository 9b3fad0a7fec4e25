"""A server whose counters of bytes stand still is not compared with a client's bytes."""

from __future__ import annotations

from cachemark.endpoints.probe.checks import judge_counters
from cachemark.model.server_stats import ServerStats

RISES = {
    "cmd_set": 3,
    "cmd_get": 3,
    "get_hits": 2,
    "get_misses": 1,
    "delete_hits": 1,
    "delete_misses": 1,
}


def judged(read: int, written: int) -> tuple[bool | None, list[str], str]:
    after = {**RISES, "bytes_read": read, "bytes_written": written}
    result = judge_counters(
        ServerStats(dict.fromkeys(after, "0")),
        ServerStats({name: str(rise) for name, rise in after.items()}),
    )
    return (
        result.fit,
        sorted(set(result.true_counters) & {"bytes_read", "bytes_written"}),
        result.seen,
    )


def test_values_must_be_in_the_counters_of_bytes() -> None:
    assert judged(30_000, 20_000)[0]
    assert judged(30_000, 19_999) == (
        False,
        ["bytes_read"],
        "bytes_written rose by 19999 for 20000 bytes",
    )
    assert judged(0, 0)[1] == []
