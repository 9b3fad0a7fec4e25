"""Actions are pinned by commit, the tools of the container by version and hash."""

import re

import pytest

from tests.conftest import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.y*ml"))
CONTAINERFILE = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
_USES = re.compile(r"^\s*(?:-\s+)?uses:\s*(.+?)\s*$", re.MULTILINE)
_PINNED_ACTION = re.compile(r"[\w.-]+(?:/[\w.-]+)+@[0-9a-f]{40} # v\d+(?:\.\d+)+")
_PIP = re.compile(r"\bpip3? install\b([^&;\n]*)")
_OWN_WHEELS = "/wheels/cachemark"


def unpinned_actions(workflow: str) -> list[str]:
    """The actions of a workflow that are not named by a commit and the version in a comment."""
    return [action for action in _USES.findall(workflow) if not _PINNED_ACTION.fullmatch(action)]


def unpinned_installs(containerfile: str) -> list[str]:
    """The arguments of each pip that installs neither cachemark's own wheels nor by hash."""
    found: list[str] = _PIP.findall(containerfile)
    return [text for text in found if "--require-hashes" not in text and _OWN_WHEELS not in text]


def test_each_action_is_pinned() -> None:
    assert WORKFLOWS
    assert {
        path.name: unpinned_actions(path.read_text(encoding="utf-8")) for path in WORKFLOWS
    } == {path.name: [] for path in WORKFLOWS}


@pytest.mark.parametrize(
    "action", ["a/b@v4", "a/b@release/v1", "a/b", f"a/b@{'0' * 40}", f"a/b@{'0' * 39} # v1.2"]
)
def test_an_unpinned_action_is_found(action: str) -> None:
    assert unpinned_actions(f"steps:\n  - uses: {action}\n") == [action]


def test_the_tools_of_the_container_are_pinned() -> None:
    assert _PIP.search(CONTAINERFILE)
    assert unpinned_installs(CONTAINERFILE) == []


def test_an_unpinned_tool_is_found() -> None:
    assert unpinned_installs("RUN pip install --no-cache-dir uv && true") == [" --no-cache-dir uv "]


def test_the_container_has_the_uv_of_the_makefile() -> None:
    version = re.search(
        r"^UV_VERSION := (\S+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    pinned = re.search(r"'uv==([\d.]+)'", CONTAINERFILE)
    assert version
    assert pinned
    assert pinned[1] == version[1]
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}'", CONTAINERFILE)) == 2
