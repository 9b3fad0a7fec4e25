"""The progress of JMH, read from its output line by line."""

import re

import msgspec

from cachemark.analysis.number_format import count_of, rough_time
from cachemark.model.jmh import JmhSettings

# Beside its iterations, roughly: the start of a JVM, connecting, and storing the keys.
_START_S = 3.0
_THREADS = re.compile(r"# Threads: (\d+ threads?)")
_BENCHMARK = re.compile(r"# Benchmark: .*\.(\w+)$")
_PARAMETERS = re.compile(r"# Parameters: \((.*)\)$")
_SHOWN = ("client", "wire", "operation")
# The line below `Result`: of sampled times, the one with their mean.
_FIGURE = re.compile(r" +(?:mean = +)?(\S+(?: ±\(99\.9%\) \S+)? (?:ops/s|us/op))")
_NO_FIGURE = "<failure>"


class JmhStep(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark that begins, or that has `ended`, with its figure."""

    text: str
    ended: bool


class JmhProgress:
    """Reads JMH's output for a number of benchmarks, one after the other."""

    def __init__(self, count: int, settings: JmhSettings, began_s: float) -> None:
        iterations_s = (settings.warmups + settings.iterations) * settings.iteration_ms / 1e3
        self._each_s = max(1, settings.forks) * (iterations_s + _START_S)
        self._count, self._began_s = count, began_s
        self._number = 0
        self._threads = self._mode = self._what = ""
        self._awaits_figure = False
        self._rest = b""

    def plan(self) -> str:
        """The number of benchmarks, and their estimated time."""
        return (
            f"{count_of(self._count, 'benchmark')}, about {rough_time(self._count * self._each_s)}"
        )

    def steps(self, printed: bytes, now_s: float) -> list[JmhStep]:
        """The benchmarks that begin and end in the next bytes of JMH's output."""
        *lines, self._rest = (self._rest + printed).split(b"\n")
        found = [self._step(line.decode("utf-8", "replace"), now_s) for line in lines]
        return [step for step in found if step]

    def _step(self, line: str, now_s: float) -> JmhStep | None:
        if match := _THREADS.match(line):
            self._threads = match[1]
        elif match := _BENCHMARK.match(line):
            self._mode = match[1]
        elif match := _PARAMETERS.match(line):
            return self._begins(match[1], now_s)
        elif line.startswith("Result "):
            self._awaits_figure = True
        elif line.endswith(_NO_FIGURE):
            return JmhStep(text=f"{self._what}: no figure", ended=True)
        elif self._awaits_figure and (match := _FIGURE.match(line)):
            self._awaits_figure = False
            return JmhStep(text=f"{self._what}: {match[1]}", ended=True)
        return None

    def _begins(self, parameters: str, now_s: float) -> JmhStep:
        values = dict(part.split(" = ", 1) for part in parameters.split(", "))
        words = [values.get(name, "") for name in _SHOWN] + [self._threads, self._mode]
        left = rough_time(self._left_s(now_s))
        self._number += 1
        self._what = f"{self._number} of {self._count}: {', '.join(words)}"
        return JmhStep(text=f"{self._what}; about {left} left", ended=False)

    def _left_s(self, now_s: float) -> float:
        """The estimated time, from the earlier benchmarks; for the first, from its iterations."""
        each_s = (now_s - self._began_s) / self._number if self._number else self._each_s
        return each_s * (self._count - self._number)
