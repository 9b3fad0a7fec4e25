"""A stored trial, read without the code that makes reports."""

import json
import math
from collections import Counter
from typing import Any

from tests.report.histogram_reader import decoded


class Line:
    """A stored trial, as JSON."""

    def __init__(self, text: bytes | str) -> None:
        self.raw: dict[str, Any] = json.loads(text)
        self.window: dict[str, Any] = self.raw["measure"]
        self.operations: dict[str, dict[str, Any]] = self.window["operations"]

    def count(self, name: str, kind: str = "all") -> int:
        kinds = [kind] if kind != "all" else list(self.operations)
        return sum(self.operations[each].get(name, 0) for each in kinds)

    def succeeded(self, kind: str = "all") -> int:
        return self.count("ok", kind) - self.count("not_stored", kind)

    def hits(self, kind: str = "all") -> int:
        """Of a cas, those that stored."""
        kinds = [kind] if kind != "all" else list(self.operations)
        return sum(
            self.count("hits", each) - (self.count("not_stored", each) if each == "cas" else 0)
            for each in kinds
        )

    def rate(self, kind: str = "all") -> float:
        """Successes per second, load generators included; for a kind, its part of them."""
        share = self.succeeded(kind) / self.succeeded()
        return (self.own_rate() + self.generated_rate()) * share

    def generated_rate(self) -> float:
        """The rate of load generators beside the client."""
        if not self.raw.get("generators"):
            return 0.0
        return Line(
            json.dumps(
                {**self.raw, "measure": self.raw["generators"]["measure"], "generators": None}
            )
        ).own_rate()

    def own_rate(self) -> float:
        """The successes per second of the client itself."""
        if slices := (self.raw.get("rounds") or {}).get("slices"):
            answered, ns = sum(slices["ops"]), sum(slices["elapsed_ns"])
        elif self.ends_by_itself or not self.window.get("timeline"):
            answered, ns = self.count("ok"), self.window["elapsed_ns"]
        else:
            timeline = self.window["timeline"]
            whole = self.raw["timing"]["measure_ms"] * 1_000_000 // timeline["slice_ns"]
            answered, ns = sum(timeline["ok"][:whole]), whole * timeline["slice_ns"]
        return answered * self.succeeded() / self.count("ok") / ns * 1e9

    def cpu_us(self, side: str) -> float | None:
        """CPU time for each answer; in rounds for all that was played, without that of turns."""
        if not (rounds := self.raw.get("rounds")):
            used = {
                "client": self.window["cpu_user_ns"] + self.window["cpu_system_ns"],
                "server": self.raw["server_use"]["cpu_ns"],
            }
            others = (self.raw.get("generators") or {}).get("measure") if side == "server" else None
            kinds = others["operations"].values() if others else []
            answers = self.count("ok") + sum(of.get("ok", 0) for of in kinds)
            return used[side] / 1e3 / answers if used[side] else None
        slices = rounds["slices"]
        turn_ns, name = (rounds["turn_cpu_ns"], "worker") if side == "client" else (0, side)
        ns = sum(max(0, each - turn_ns) for each in slices[f"{name}_cpu_ns"])
        return ns / 1e3 / sum(sum(slices[name]) for name in ("ops", "errors", "lead_in_ops"))

    def evictions(self) -> int:
        """The server's evictions between its two readings."""
        return int(self.raw["stats_after"]["evictions"]) - int(
            self.raw["stats_before"]["evictions"]
        )

    @property
    def ends_by_itself(self) -> bool:
        workload = self.raw["workload"]
        return any(workload.get(name) for name in ("ops", "passes", "fill_percent", "trace"))

    def times(self, kind: str = "all") -> Counter[int]:
        """How many response times each bucket of a histogram has, by its highest value in ns."""
        kinds = [kind] if kind != "all" else list(self.operations)
        texts = [self.operations[each].get("response") for each in kinds]
        return sum((decoded(text) for text in texts if text), Counter[int]())

    def may_lack(self, percent: float, kind: str, count: int) -> bool:
        """Whether a percentile may be absent: too few operations, failed ones, or withheld."""
        withheld = {(each["kind"], each["percent"]) for each in self.raw.get("withheld", [])}
        failed = any(operation.get("errors") for operation in self.operations.values())
        judged = "" if kind == "all" or len(self.operations) == 1 else kind
        return too_few(count, percent) or failed or (judged, percent) in withheld


def too_few(count: int, percent: float) -> bool:
    """Whether a number of operations is too small for a percentile."""
    return count < math.log(0.025) / math.log(percent / 100)


def shown(rate: float) -> str:
    """A rate as people read it: three significant digits."""
    for factor, suffix in ((1e6, " M"), (1e3, " k")):
        if rate >= 0.9995 * factor:
            digits = rate / factor
            return f"{digits:.{0 if digits >= 99.95 else 1 if digits >= 9.995 else 2}f}{suffix}"
    return f"{rate:.{0 if rate >= 99.95 else 1 if rate >= 9.995 else 2}f}"
