"""`compare --play`: what cannot be played is one clear error. test_ci_action.py plays builds."""

import pytest

from tests.cli.in_process import Inside

REFUSED = [
    ("one client", ["--client", "native"], "two clients on one server, or two servers"),
    ("a run", ["some-run", "--client", "native", "--client", "null"], "--play takes no run"),
    (
        "a language without versions",
        ["--client", "native@1.0", "--client", "native"],
        "versions can be chosen for libraries of go, java, node, python, ruby only",
    ),
    (
        "no folder",
        ["--client", "python/pymemcache@./nowhere", "--client", "python/pymemcache"],
        "name a source tree",
    ),
    (
        "no such version",
        ["--client", "python/pymemcache@0.0.0", "--client", "python/pymemcache"],
        "cannot be installed",
    ),
]


@pytest.mark.parametrize(
    ("arguments", "says"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_bad_input_is_one_clear_error(inside: Inside, arguments: list[str], says: str) -> None:
    ended = inside("compare", "--play", *arguments)
    assert ended.returncode == 2
    assert says in " ".join(ended.stderr.split())
    assert "Traceback" not in ended.stderr
