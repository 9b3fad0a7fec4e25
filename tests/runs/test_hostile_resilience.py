"""Runs of `cachemark resilience` that were changed by hand: a report, or one error in words."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cachemark.analysis.resilience.cell import (
    CellName,
    CellOutcome,
    ResilienceHeader,
    ResiliencePlan,
    WrongValue,
)
from cachemark.analysis.resilience.figures import Phases
from cachemark.analysis.resilience.verdict import FaultFinding
from cachemark.model.errors import UsageError
from cachemark.runs.resilience.stored import open_resilience_run
from tests.builders.hostile_text import CORPUS, is_unsafe
from tests.builders.outcomes import experiment, header
from tests.cli.in_process import Inside
from tests.report.test_hostile_text import check

FAULT = "frozen-1s"
QUOTED = "x'; touch OWNED; '"


def outcome(client: str, text: str) -> CellOutcome:
    name = CellName(client=client, profile="common", fault=FAULT, sitting=1)
    return CellOutcome(
        name=name,
        library=text,
        library_version=text,
        runtime=text,
        server=text,
        verdict="unsafe",
        findings=[FaultFinding(rule="wrong value", verdict="unsafe", why=text)],
        phases=Phases(start_ns=0, fault_ns=10**9, fault_end_ns=2**62, end_ns=2**62),
        timeline=[{"wrong": 1, text: 2}],
        wrong_values=[WrongValue(key=text, what=text, value=text)],
        disturbed=text,
    )


def stored(root: Path, clients: list[str], **plan: Any) -> Path:
    """A run with an outcome for each client."""
    given = {"clients": clients, "profiles": ["common"], "faults": [FAULT], "sittings": 1, **plan}
    joined = " ".join(CORPUS)
    head = ResilienceHeader(
        id="made",
        created_at=joined,
        cachemark=joined,
        plan=msgspec.convert(given, ResiliencePlan),
        host=msgspec.structs.replace(header(experiment(["a"])).host, cpu_model=joined),
    )
    folder = root / "results" / "made"
    folder.mkdir(parents=True)
    (folder / "resilience.json").write_bytes(msgspec.json.encode(head))
    lines = [msgspec.json.encode(outcome(client, client)) + b"\n" for client in clients]
    (folder / "cells.jsonl").write_bytes(b"".join(lines))
    return folder


def test_every_form_of_a_report(tmp_path: Path, inside: Inside) -> None:
    folder = stored(tmp_path, [*CORPUS, QUOTED])
    for more in ([], ["--json"]):
        said = inside("resilience", "--resume", "made", *more)
        assert said.returncode == 1, said.stderr
        assert not is_unsafe(said.stdout + said.stderr)
    pages = [path.read_text(encoding="utf-8") for path in (folder / "report").glob("*.html")]
    assert pages
    for page in pages:
        assert not is_unsafe(page)
        assert "<script>1" not in page
        assert "<img src=x" not in page
    for form, name in (("csv", "matrix.csv"), ("markdown", "matrix.md"), ("json", "matrix.json")):
        text = (folder / "report" / name).read_text(encoding="utf-8")
        assert not is_unsafe(text)
        check(form, text)


@pytest.mark.parametrize("client", [QUOTED, "$(id)", "a b", "native?uring=yes"])
def test_the_replay_command_has_one_word_for_the_client(client: str) -> None:
    words = shlex.split(outcome(client, "x").name.replay)
    assert words[:3] == ["cachemark", "resilience", client]


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        ({"faults": ["none"]}, "no fault 'none'"),
        ({"sittings": 10**12}, "at most"),
        ({"sittings": 0}, "at least one"),
        ({"sittings": -1}, "at least one"),
    ],
)
def test_a_plan_that_cannot_be_played_is_refused(
    tmp_path: Path, inside: Inside, plan: dict[str, Any], text: str
) -> None:
    stored(tmp_path, ["native"], **plan)
    for more in ([], ["--dry-run"]):
        said = inside("resilience", "--resume", "latest", *more)
        assert said.returncode == 2
        assert text in said.stderr


@pytest.mark.parametrize("text", ["{}", "[" * 20_000, "\x00", json.dumps({"name": 1})])
def test_cells_that_are_none_are_refused(tmp_path: Path, inside: Inside, text: str) -> None:
    folder = stored(tmp_path, ["native"])
    (folder / "cells.jsonl").write_text(text + "\n", encoding="utf-8")
    said = inside("resilience", "--resume", "made")
    assert said.returncode == 2
    assert re.search(r"cells\.jsonl: cannot be read", said.stderr)


def test_a_folder_that_is_a_link_is_no_run(tmp_path: Path) -> None:
    """Whether it is asked for by its id or its path; nor is it the latest run."""
    folder = stored(tmp_path, ["native"])
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    for name in ("made", str(folder)):
        with pytest.raises(UsageError, match="a symbolic link, which is not followed"):
            open_resilience_run(name, tmp_path / "results")
    with pytest.raises(UsageError, match="holds none"):
        open_resilience_run("", tmp_path / "results")
