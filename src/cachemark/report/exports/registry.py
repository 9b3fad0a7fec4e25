"""The forms of other programs: one form = one file, made from a run's series.

A report is for people and is built once. An export is for another program, or has the shape of a
published page; it is made from the trials and histograms themselves.
"""

from collections.abc import Callable

from cachemark.report.exports import (
    bencher,
    github_action,
    go_bench,
    google_benchmark,
    hgrm,
    hlog,
    hyperfine,
    jmh_json,
    jmh_text,
    ruby_bench,
)
from cachemark.report.originals import constcache, pyemc, quickcached
from cachemark.report.series import ExportedRun


def _openmetrics(run: ExportedRun) -> dict[str, str]:
    # Late: prometheus_client brings an HTTP server, and every verb that prints reports comes here.
    from cachemark.report.exports import openmetrics  # noqa: PLC0415

    return openmetrics.render(run)


# File name → text; more than one where the form wants a file for each histogram, or direction.
EXPORTS: dict[str, Callable[[ExportedRun], dict[str, str]]] = {
    "jmh-json": jmh_json.render,
    "hgrm": hgrm.render,
    "hlog": hlog.render,
    "go-bench": go_bench.render,
    "google-benchmark": google_benchmark.render,
    "hyperfine": hyperfine.render,
    "bencher": bencher.render,
    "github-action": github_action.render,
    "openmetrics": _openmetrics,
    "jmh": jmh_text.render,
    "ruby-bench": ruby_bench.render,
    "quickcached": quickcached.render,
    "emcache": pyemc.render,
    "constcache": constcache.render,
}
