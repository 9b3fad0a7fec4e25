"""Passes requests on to another worker, and changes what it says of its window and its slices.

Usage: lying_worker.py LIE PROGRAM ARGUMENTS. LIE is `honest`; one of `clock`, `cpu`, `counts` (of
slices), `bytes` (of values), `calls` (a third of their time), `times` (no response time is above
the median), `scaled` (a third of every time), `half` (as many operations again, each half as
long) and `late` (no operation ended within the window), which all workers tell; or `clock-of-one`
or `cpu-of-one`, which only the worker of the tape's second segment tells.
"""

import json
import subprocess
import sys
import threading
from typing import IO, Any

import numpy as np

from cachemark.model import histogram

DIVISORS: dict[str, dict[str, float]] = {
    "honest": {},
    "clock": {"elapsed_ns": 3, "send_elapsed_ns": 3},
    "cpu": {"cpu_user_ns": 10, "cpu_system_ns": 10},
    "bytes": {},
    "times": {},
    "calls": {},
    "counts": {"ops": 0.5},
    "late": {},
    "scaled": dict.fromkeys(
        ("elapsed_ns", "send_elapsed_ns", "half_ns", "cpu_user_ns", "cpu_system_ns"), 3
    ),
    "half": dict.fromkeys(("ops", "errors", "half_ops", "lead_in_ops"), 0.5),
}
TIMES = ("response", "service")
COUNTS = ("attempts", "ok", "hits", "misses", "keys", "key_bytes", "value_bytes", "not_stored")


def main() -> None:
    lie, *command = sys.argv[1:]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        lie, _, of_one = lie.partition("-")
        divisors: dict[str, float] = {} if of_one else DIVISORS[lie]
        answers = threading.Thread(target=pass_answers, args=(worker.stdout, divisors, lie))
        answers.start()
        for line in sys.stdin.buffer:
            if of_one and b'"segment"' in line and json.loads(line)["segment"][0] == 1:
                divisors |= DIVISORS[lie]
            worker.stdin.write(half_of(line) if lie == "half" else line)
            worker.stdin.flush()
        worker.stdin.close()
        answers.join()


def half_of(line: bytes) -> bytes:
    """A run of a number of operations, with half of them."""
    request = json.loads(line)
    if request["type"] == "run" and request.get("ops"):
        return json.dumps({**request, "ops": request["ops"] // 2}).encode() + b"\n"
    return line


def pass_answers(lines: IO[bytes], divisors: dict[str, float], lie: str) -> None:
    for line in lines:
        answer = json.loads(line)
        if answer["type"] in ("done", "slice_done"):
            told = divisors.keys() & answer.keys()
            answer |= {name: int(answer[name] / divisors[name]) for name in told}
            if lie == "late" and (timeline := answer.get("timeline")):
                timeline["ok"] = [0 for _ in timeline["ok"]]
            for each in answer.get("operations", {}).values():
                if lie == "bytes":
                    each["value_bytes"] *= 2
                if lie == "calls":
                    each["busy_ns"] //= 3
                if lie == "times" and each.get("response"):
                    each["response"] = shorter(each["response"])
                if lie == "scaled":
                    each["busy_ns"] //= 3
                    each |= {name: faster(each[name], 3) for name in TIMES if each.get(name)}
            if lie == "half":
                for each in [*answer.get("operations", {}).values(), *lead_ins(answer)]:
                    each |= {name: 2 * n for name, n in each.items() if name in COUNTS}
                    each |= {name: faster(each[name], 2, 2) for name in TIMES if each.get(name)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def lead_ins(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [*(answer.get("lead_in") or {}).values()]


def faster(blob: str, divisor: int, times: int = 1) -> str:
    """Each time of a histogram divided, and as often as told."""
    told = histogram.decode(blob).counts
    counts = np.zeros_like(told)
    for index in np.flatnonzero(told):
        value_ns = histogram.bucket_lowest_ns(int(index)) // divisor
        counts[histogram.bucket_index(value_ns)] += times * told[index]
    return histogram.encode(histogram.Histogram(counts))


def shorter(blob: str) -> str:
    """Every time of a histogram above its median is the median."""
    counts = histogram.decode(blob).counts.copy()
    middle = int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))
    counts[middle] += counts[middle + 1 :].sum()
    counts[middle + 1 :] = 0
    return histogram.encode(histogram.Histogram(counts))


if __name__ == "__main__":
    main()
