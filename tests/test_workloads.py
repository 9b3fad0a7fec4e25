"""Workloads that only the native client plays, through whole trials."""

from __future__ import annotations

import msgspec

from cachemark.outcome import Outcome
from tests.conftest import Cli
from tests.runs import outcomes

TEXT = """name = "x"
question = "q"
clients = ["native"]
servers = ["embedded"]
blocks = 1
timing = { warmup_ms = 0, measure_ms = 200, timeout_ms = 10000 }
placement = { server = "none", worker = "none" }
[[workloads]]
name = "fetch"
mix = { fetch = 1 }
prefill = 0.25
ops = 2000
keys = { count = 1000 }
loads = ["l"]
[[workloads]]
name = "hits"
preset = "etc"
mix = { get = 1 }
ops = 2000
keys = { count = 1000 }
loads = ["l"]
[[workloads]]
name = "think"
mix = { get = 1 }
ops = 100
loads = ["thoughtful"]
[[loads]]
name = "l"
connections = 4
[[loads]]
name = "thoughtful"
think = "1ms"
connections = 2
"""
