"""Numbers and files that no machine can carry out are refused at once, before anything starts."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from cachemark.host.sandbox import Limits, run_limited
from cachemark.model.errors import UsageError
from cachemark.model.experiment_file import parse
from tests.cli.in_process import Inside, inside

__all__ = ["inside"]


@pytest.mark.parametrize(
    "options",
    [
        ["--blocks", "1000000000000"],
        ["--blocks", "100001"],
        ["--depth", "1000000000"],
        ["--connections", "4294967295"],
        ["--processes", "100000"],
        ["--threads", "1000000"],
        ["--processes", "1000", "--connections", "60000"],
        ["--connections", "60000", "--depth", "60000"],
    ],
)
def test_absurd_options_end_with_2(inside: Inside, tmp_path: Path, options: list[str]) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    said = inside("run", "quick", "--client", "native", "--server", "embedded", *options)
    assert said.returncode == 2
    assert "more than" in said.stderr or "<=" in said.stderr
    assert not (tmp_path / "results").exists()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 10


@pytest.mark.parametrize(
    "text",
    [
        "a" + ".a" * 20_000 + " = 1",
        "[a" + ".a" * 20_000 + "]",
        "x = {a" + " . a" * 20_000 + " = 1}",
        'a."\\"".' + '"b".' * 20_000 + "c = 1",
        "name = '" + "x" * 5_000_000 + "'",
        "clients = [" + "'a'," * 5_000 + "]",
    ],
)
def test_a_table_that_is_deep_or_long_takes_no_memory(text: str) -> None:
    def read() -> bytes:
        with pytest.raises(UsageError, match=r"f\.toml"):
            parse(text, "f.toml")
        return b""

    run_limited(read, Limits(memory_bytes=100 * 2**20, time_s=20, file_bytes=0))


def test_a_key_of_a_few_parts_is_read() -> None:
    with pytest.raises(UsageError, match="no such setting"):
        parse("a.b.c.d = 1\nquestion = 'a.b.c.d.e.f.g.h.i.j.k'", "f.toml")
