"""Results of an interrupted run of JMH: what its file has, none of other settings."""

from collections.abc import Mapping, Sequence
from typing import Any

from cachemark.endpoints.clients import ClientSpec
from cachemark.model.errors import TrialError, UsageError
from cachemark.model.jmh import JmhMeasurement, JmhSettings
from cachemark.runs.jmh import Benchmark, benchmarks, parameters, parse_results

# Results of an interrupted run, by client and benchmark.
Kept = Mapping[tuple[str, Benchmark], JmhMeasurement]


def kept_measurements(
    document: bytes, place: str, specs: Sequence[ClientSpec], settings: JmhSettings
) -> Kept:
    """The measurements in a file, by client and benchmark; the file has no others.

    Raises UsageError where the file cannot be read, or has results of other settings.
    """
    try:
        entries, results = parse_results(document)
    except TrialError as error:
        raise UsageError(f"{place}: {error}", "name the file that --json wrote") from error
    wanted = {
        _as_printed(_identity(spec, settings, benchmark)): (spec.text, benchmark)
        for spec in specs
        for benchmark in benchmarks(spec, settings)
    }
    kept: dict[tuple[str, Benchmark], JmhMeasurement] = {}
    for entry, result in zip(entries, results, strict=True):
        name = wanted.get(_as_printed(_identity_of(entry)))
        if name is None:
            what = " ".join(str(result.params.get(one)) for one in ("client", "wire", "operation"))
            raise UsageError(
                f"{place} has results of other settings, such as {what}, {result.threads} threads",
                "repeat the command that was interrupted, with --resume",
            )
        kept[name] = JmhMeasurement(client=name[0], entries=[entry], results=[result])
    return kept


def _identity(spec: ClientSpec, settings: JmhSettings, benchmark: Benchmark) -> dict[str, object]:
    each = f"{settings.iteration_ms} ms"
    return {
        **parameters(spec, settings, benchmark),
        "mode": benchmark.mode,
        "threads": benchmark.threads,
        "forks": settings.forks,
        "warmupIterations": settings.warmups,
        "warmupTime": each,
        "measurementIterations": settings.iterations,
        "measurementTime": each,
    }


def _identity_of(entry: Mapping[str, Any]) -> dict[str, object]:
    """The same of JMH's entry. The server's address differs from run to run."""
    given = {name: value for name, value in entry["params"].items() if name != "server"}
    numbers = ("threads", "forks", "warmupIterations", "measurementIterations")
    times = ("warmupTime", "measurementTime")
    mode = entry["benchmark"].rpartition(".")[2]
    return {**given, "mode": mode, **{name: entry.get(name) for name in (*numbers, *times)}}


def _as_printed(identity: Mapping[str, object]) -> frozenset[tuple[str, str]]:
    return frozenset((name, str(value)) for name, value in identity.items())
