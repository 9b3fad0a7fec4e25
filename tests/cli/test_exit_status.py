"""Exit statuses: one table in the program, and in `--help`."""

import re

from cachemark.cli import exit_status
from cachemark.cli.program import app
from tests.cli.in_process import Inside
from tests.conftest import bad_worker


def test_each_verb_says_its_exit_statuses(inside: Inside) -> None:
    verbs = {name for name in app if not name.startswith("-")}
    assert exit_status.FAILURES.keys() <= verbs
    for verb in exit_status.FAILURES:
        said = re.sub(r"\s+", " ", inside(verb, "--help").stdout)
        assert f"Exit status: 0 done; 1 {exit_status.FAILURES[verb]}" in said


def test_a_failure_is_printed_with_its_remedy(inside: Inside) -> None:
    """Such as a worker that was built for another version of the protocol."""
    ended = inside("conform", bad_worker("speaks_version_1"))
    assert ended.returncode == 1
    assert "speaks version 1 of the worker protocol" in ended.stderr
    assert "cachemark setup LANGUAGE" in ended.stderr
