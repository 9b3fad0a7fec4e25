"""The live runs that visitors watch: one reader for all viewers of a run."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from cachemark.report.live import MAX_POINTS, ROWS_IN_A_MESSAGE, LiveState
from cachemark.runs.events.log import EventReader, process_start

INTERVAL_S = 0.5
_POINTS_IN_A_MESSAGE = 40


class Feed:
    """A run's events, read when a viewer asks, and at most twice a second."""

    def __init__(self, folder: Path) -> None:
        self._reader = EventReader(folder)
        self._state = LiveState()
        self._lock = threading.Lock()
        self._read_at = 0.0

    def snapshot(self) -> dict[str, object]:
        """The whole state for a page, and the number of its last event."""
        with self._lock:
            self._refresh()
            state = self._state
            return {
                "id": state.last_id,
                "max_points": MAX_POINTS,
                "cells": state.cells,
                "points": state.timeline(),
                "rankings": state.rankings(),
                "problems": state.problems(),
                "answers": state.answers,
                "refused": state.refused,
                **self._status(),
            }

    def standing(self) -> Literal["", "running", "ended"]:
        """The state of the run; empty without events."""
        with self._lock:
            self._refresh()
            if self._state.started is None:
                return ""
            return "running" if self._is_running() else "ended"

    def messages(self, after: int) -> tuple[int, list[tuple[str, bytes]]]:
        """The messages after an event: the last number, and their names and data below 4 kB."""
        with self._lock:
            self._refresh()
            if self._state.last_id == after and self._is_running():
                return after, []
            encoded = [(name, msgspec.json.encode(data)) for name, data in self._news(after)]
            return self._state.last_id, encoded

    def _news(self, after: int) -> Iterator[tuple[str, object]]:
        state = self._state
        points = state.points_after(after)
        for number in sorted({point.cell for point in points}):
            yield "cell", {"number": number, "names": state.cells[number]}
        for at in range(0, len(points), _POINTS_IN_A_MESSAGE):
            yield "points", points[at : at + _POINTS_IN_A_MESSAGE]
        if state.changed_id > after:
            for ranking in state.rankings():
                for at in range(0, len(ranking.rows), ROWS_IN_A_MESSAGE):
                    rows = ranking.rows[at : at + ROWS_IN_A_MESSAGE]
                    count = len(ranking.rows)
                    yield "ranking", {
                        "title": ranking.title, "by_rate": ranking.by_rate,
                        "in_turns": ranking.in_turns, "at": at, "count": count, "rows": rows,
                    }  # fmt: skip
            for at, problem in enumerate(state.problems()):
                yield "problem", {"at": at, **msgspec.structs.asdict(problem)}
            yield "words", {"answers": state.answers}
            yield "words", {"refused": state.refused}
        yield "status", self._status()

    def _status(self) -> dict[str, object]:
        state = self._state
        return {
            "begun": state.started is not None,
            "running": self._is_running(),
            "interrupted": state.ended is None or state.ended.interrupted,
            "unit": state.started.unit if state.started else "trial",
            "position": state.position,
            "seconds": round(time.time() - state.began_at) if state.began_at else 0,
            "noise": state.noise,
            "web_cpu_s": round(time.process_time(), 2),
        }

    def _is_running(self) -> bool:
        """Whether the run's process lives, and has not ended the run."""
        started = self._state.started
        if started is None or self._state.ended is not None:
            return False
        return process_start(started.pid) == started.process_start

    def _refresh(self) -> None:
        now = time.monotonic()
        if now - self._read_at < INTERVAL_S / 2:
            return
        self._read_at = now
        for line in self._reader.new_lines():
            self._state.apply(line)


class Feeds:
    """The feeds of the runs that visitors watched last."""

    _KEPT = 8

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._feeds: dict[Path, Feed] = {}

    def of(self, folder: Path) -> Feed:
        """The feed of a run."""
        with self._lock:
            feed = self._feeds.pop(folder, None) or Feed(folder)
            self._feeds[folder] = feed
            for path in list(self._feeds)[: -self._KEPT]:
                del self._feeds[path]
            return feed
