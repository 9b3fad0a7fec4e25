"""The store as visitors see it: runs by their names, and cached reports."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from starlette.exceptions import HTTPException

from cachemark.model.errors import UsageError
from cachemark.model.faults import chosen_faults
from cachemark.report import html
from cachemark.report.formats import fits_together, load_report
from cachemark.report.history.index import RunIndex, stamp_of
from cachemark.report.model import Report
from cachemark.report.resilience.html import about_run, pages
from cachemark.report.resilience.matrix import matrix
from cachemark.runs.resilience.stored import ResilienceRun, RunFolder
from cachemark.runs.storage.store import Run, open_run, run_names

_KEPT = 8
# How long a page waits for the index before it shows how far that is.
PATIENCE_S = 1.0
_Value = TypeVar("_Value")
_Run = TypeVar("_Run", Run, ResilienceRun)


def stored_run(name: str, root: Path) -> Run:
    """The run of that name in the store. Raises HTTPException for all other names.

    So no text of a request ever becomes a path.
    """
    if name not in run_names(root):
        raise HTTPException(404, f"there is no run {name!r} in this store")
    return open_run(name, root)


class NoStoreError(UsageError):
    """There is no folder of runs."""


class StillReadingError(Exception):
    """The index does not have all runs yet; the text says which one is read."""


class IndexReader:
    """Opens the index. A thread reads the runs that it lacks: many take long."""

    def __init__(self, root: Path) -> None:
        self._root, self._text = root, ""
        self._lock = threading.Lock()
        self._reading: Future[RunIndex] | None = None

    def open(self) -> RunIndex:
        """The index with all runs. Raises NoStoreError, or StillReadingError if it takes longer."""
        if not self._root.is_dir():
            raise NoStoreError(f"{self._root}: no such folder", "make a run: cachemark run quick")
        # What is read for an index that cannot be kept is read for one page only.
        if not os.access(self._root, os.W_OK):
            return self._made()
        with self._lock:
            is_mine = self._reading is None or self._reading.done()
            if is_mine:
                self._reading = Future()
                threading.Thread(target=self._fill, name="index", daemon=True).start()
            reading = self._reading
        assert reading is not None
        try:
            made = reading.result(PATIENCE_S)
        except TimeoutError as error:
            if is_mine:
                reading.add_done_callback(_close)
            raise StillReadingError(self._text) from error
        # A run may have changed since another page began to read.
        return made if is_mine else self._made()

    def _fill(self) -> None:
        reading = self._reading
        assert reading is not None
        try:
            reading.set_result(self._made())
        except Exception as error:
            reading.set_exception(error)

    def _made(self) -> RunIndex:
        return RunIndex(RunFolder(self._root), progress=self._tell)

    def _tell(self, text: str) -> None:
        self._text = text


def _close(reading: Future[RunIndex]) -> None:
    if not reading.exception():
        reading.result().close()


class ReportCache:
    """The latest reports, as values and as pages: drawing one takes seconds of CPU time.

    It makes one report at a time, since a measurement may be going on.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reports: OrderedDict[tuple[str, str], Report] = OrderedDict()
        self._pages: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._matrices: OrderedDict[tuple[str, str], dict[str, str]] = OrderedDict()

    def report(self, run: Run) -> Report:
        """A run's report as a value. Raises UsageError."""
        with self._lock:
            return _kept(self._reports, run, load_report)

    def page(self, run: Run) -> str:
        """A run's report as an HTML page. Raises UsageError."""
        report = self.report(run)
        with self._lock, fits_together(run):
            return _kept(self._pages, run, lambda _: html.render(report, None))

    def resilience_pages(self, run: ResilienceRun) -> dict[str, str]:
        """The pages of a run of `resilience`, by file name. Raises UsageError."""
        with self._lock:
            return _kept(self._matrices, run, _resilience_pages)


def _resilience_pages(run: ResilienceRun) -> dict[str, str]:
    outcomes, names = run.outcomes(), run.header.plan.faults
    about = about_run(run.header, outcomes)
    with fits_together(run):
        return pages(matrix(outcomes, names), chosen_faults(names, quick=False), about)


def _kept(
    cache: OrderedDict[tuple[str, str], _Value], run: _Run, make: Callable[[_Run], _Value]
) -> _Value:
    key = str(run.folder), stamp_of(run.folder)
    if key not in cache:
        cache[key] = make(run)
    cache.move_to_end(key)
    while len(cache) > _KEPT:
        cache.popitem(last=False)
    return cache[key]
