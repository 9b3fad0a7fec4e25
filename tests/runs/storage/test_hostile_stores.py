"""Stores that were changed by hand, or came from somebody else as folders: refused in words."""

import contextlib
import json
import os
from pathlib import Path

import pytest

from cachemark.cli.play import write_report
from cachemark.model.errors import UsageError
from cachemark.model.events import EVENTS_FILE, Ended
from cachemark.runs.events.log import EventLog, EventReader
from cachemark.runs.storage.store import open_run, run_names
from tests.builders.stored_runs import kept, made_header, trials
from tests.cli.in_process import Inside

GOOD, BAD = "2026-02-good", "2026-03-bad"


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """The folder of a run beside a good one."""
    kept(tmp_path / "results", made_header(GOOD), trials("a", 500, 3))
    return kept(tmp_path / "results", made_header(BAD), trials("a", 500, 3)).folder


def good_is_listed(inside: Inside) -> None:
    said = inside("history")
    assert said.returncode == 0, said.stderr
    assert GOOD in said.stdout


@pytest.mark.parametrize("name", ["outcomes.jsonl", "audit.json", "run.json"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "circle"])
def test_what_is_no_file_is_not_waited_for(bad: Path, inside: Inside, name: str, kind: str) -> None:
    path = bad / name
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "device" else path)
    good_is_listed(inside)
    for arguments in (["report", BAD], ["export", BAD, "x.zip"], ["run", "--resume", BAD]):
        said = inside(*arguments)
        assert said.returncode == 2 or (arguments[0], name) == ("export", "audit.json"), said.stderr
        assert len(said.stderr.splitlines()) <= 2
        assert "no run '" not in said.stderr  # the list names it


@pytest.mark.parametrize("name", ["run.json", "outcomes.jsonl", "report.md", "events.jsonl"])
def test_no_link_in_a_run_is_read_or_written_through(
    bad: Path, inside: Inside, tmp_path: Path, name: str
) -> None:
    """Also a link to what would do: the run's own file, elsewhere."""
    secret = tmp_path / "secret"
    if (bad / name).exists():
        (bad / name).rename(secret)
    else:
        secret.write_text("secret\n", encoding="utf-8")
    before = secret.read_bytes()
    (bad / name).symlink_to(secret)
    said = inside("export", BAD, str(tmp_path / "x.zip"))
    exported = name == "events.jsonl"
    assert said.returncode == (0 if exported else 2), said.stderr
    assert (tmp_path / "x.zip").exists() == exported
    if not exported:
        assert f"{BAD}/{name}: " in said.stderr
        assert "a symbolic link, which is not followed" in said.stderr
    with contextlib.suppress(UsageError), open_run(BAD, tmp_path / "results") as run:
        run.append(trials("a", 400))
        run.outcomes()
        write_report(run)
        EventLog(bad).write(Ended(interrupted=False))
    assert EventReader(bad).new_lines() == [] or name != "events.jsonl"
    assert secret.read_bytes() == before


def test_no_audit_is_read_through_a_link(bad: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret\n", encoding="utf-8")
    (bad / "audit.json").symlink_to(tmp_path / "secret")
    run = open_run(BAD, tmp_path / "results")
    with pytest.raises(UsageError, match="a symbolic link, which is not followed"):
        run.audit()


def test_no_lock_is_made_through_a_link(bad: Path, tmp_path: Path) -> None:
    """Neither a file that is there is locked, nor one made where there is none."""
    link, elsewhere = bad / "lock", tmp_path / "elsewhere"
    link.unlink(missing_ok=True)
    link.symlink_to(elsewhere)
    run = open_run(BAD, tmp_path / "results")
    with pytest.raises(UsageError, match=f"{BAD}: cannot be written"), run:
        pass
    assert not elsewhere.exists()
    elsewhere.touch()
    with pytest.raises(UsageError, match=f"{BAD}: cannot be written"), run:
        pass


def test_a_folder_that_is_a_link_is_no_run(bad: Path, inside: Inside, tmp_path: Path) -> None:
    """Whether it is asked for by its id or its path; it is in no list."""
    bad.rename(tmp_path / "elsewhere")
    bad.symlink_to(tmp_path / "elsewhere")
    good_is_listed(inside)
    assert run_names(tmp_path / "results") == [GOOD]
    for name in (BAD, str(bad)):
        for arguments in (["report", name], ["export", name, "x.zip"], ["run", "--resume", name]):
            said = inside(*arguments)
            assert said.returncode == 2, said.stderr
            assert "a symbolic link, which is not followed" in said.stderr
    assert not (tmp_path / "x.zip").exists()


def test_a_report_replaces_a_link_by_a_file(bad: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    (bad / "report.md").symlink_to(tmp_path / "secret")
    write_report(open_run(BAD, tmp_path / "results"))
    assert not (bad / "report.md").is_symlink()
    assert (bad / "report.md").read_text(encoding="utf-8").startswith("# made")


def test_a_dangling_link_marks_a_run_as_imported(bad: Path, tmp_path: Path) -> None:
    (bad / "imported.json").symlink_to("nowhere")
    assert open_run(BAD, tmp_path / "results").imported


def test_the_events_of_a_run_may_be_a_pipe(bad: Path) -> None:
    os.mkfifo(bad / EVENTS_FILE)
    assert EventReader(bad).new_lines() == []


@pytest.mark.parametrize("name", ["../../owned", "/tmp/owned", "$(id)", "", "x\ny", "x" * 300])
def test_a_path_or_a_command_is_no_id(bad: Path, inside: Inside, tmp_path: Path, name: str) -> None:
    """The id names the file of an archive, and stands in commands that reports propose."""
    header = json.loads((bad / "run.json").read_bytes())
    (bad / "run.json").write_text(json.dumps({**header, "id": name}), encoding="utf-8")
    good_is_listed(inside)
    (tmp_path / "out").mkdir()
    for arguments in (["export", BAD, "out"], ["report", BAD, "--format", "answers"]):
        said = inside(*arguments)
        assert said.returncode == 2
        assert "no run's id" in said.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_whose_name_is_not_text_hides_no_other(bad: Path, inside: Inside) -> None:
    bad.rename(bad.parent / os.fsdecode(b"\xff"))
    good_is_listed(inside)
    assert inside("report").returncode == 0


@pytest.mark.parametrize(
    "text",
    ["{", '{"hosts": 1}', "[" * 20_000, '{"experiment": {"blocks": 1e999}}'],
)
def test_a_header_that_is_none(bad: Path, inside: Inside, text: str) -> None:
    (bad / "run.json").write_text(text, encoding="utf-8")
    good_is_listed(inside)
    assert inside("report", BAD).returncode == 2
