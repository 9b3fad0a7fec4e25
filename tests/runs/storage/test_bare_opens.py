"""A ratchet: in the rooms that handle runs, files are opened by `cachemark.host.files`.

`open` and `Path.read_text` follow links, which whoever made a run's folder may have put there.
"""

import ast
from collections import Counter
from pathlib import Path

import pytest

import cachemark

SOURCES = Path(cachemark.__file__).parent
ROOMS = ("cli", "report", "runs", "web")
BARE = ("open", "read_bytes", "read_text", "write_bytes", "write_text")
# File → how many bare calls it has, all on paths outside of a run's folder. Only to be lowered.
ALLOWED = {
    "cli/capacity.py": 2,  # a new temporary folder of the own user
    "cli/front_page.py": 1,  # a table that ships with cachemark
    "cli/jmh.py": 1,  # a file that the user names, in no folder of a run
    "cli/standard_streams.py": 2,  # /dev/null
    "cli/why.py": 2,  # an earlier answer that the user names, in no folder of a run; its own work
    "report/history/index.py": 1,  # a method of this name, which reads by `open_regular`
    "report/html/environment.py": 1,  # cachemark's own style sheets and script
    "report/why/document.py": 1,  # cachemark's own list
    "runs/agents/dask_settings.py": 1,  # cachemark's own settings
    "runs/agents/identity.py": 1,  # cachemark's own sources
    "runs/calibrate/sweep.py": 1,  # a method of this name, which opens no file
    "runs/counting/instructions.py": 1,  # a new temporary folder of the own user
    "runs/counting/player.py": 1,  # a new temporary folder of the own user
    "runs/counting/processor.py": 1,  # the same
    "runs/counting/profiles.py": 1,  # the same
    "runs/counting/traffic.py": 1,  # the same
    "runs/jmh.py": 5,  # a new temporary folder of the own user
    "runs/resilience/injection.py": 4,  # /etc/hosts, and a new temporary folder
    "runs/storage/archive.py": 3,  # new files ("xb"), and a member of an archive
    "runs/storage/store.py": 1,  # os.open with O_NOFOLLOW
    "web/pages/cell_history.py": 1,  # the index's method of this name
    "web/pages/comparison.py": 1,  # the same
    "web/pages/import_run.py": 1,  # a new temporary folder of the own user
    "web/pages/runs.py": 1,  # the index's method of this name
    "web/player.py": 1,  # a new temporary folder of the own user
    "web/server.py": 1,  # a descriptor that is open
}


def bare_calls(source: str) -> int:
    """How often a module opens, reads or writes a file without `open_regular`."""
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    names = [call.id for call in calls if isinstance(call, ast.Name)]
    return sum(
        [name == "open" for name in names]
        + [isinstance(call, ast.Attribute) and call.attr in BARE for call in calls]
    )


def test_no_further_file_of_a_run_is_opened_bare() -> None:
    found = Counter[str]()
    for room in ROOMS:
        for path in (SOURCES / room).rglob("*.py"):
            if calls := bare_calls(path.read_text(encoding="utf-8")):
                found[path.relative_to(SOURCES).as_posix()] = calls
    assert dict(found) == ALLOWED


@pytest.mark.parametrize(
    "source",
    [
        'open(run.folder / "x")',
        '(run.folder / "x").open()',
        "path.read_bytes()",
        "path.read_text()",
        'path.write_bytes(b"")',
        'path.write_text("")',
        "os.open(path, os.O_RDONLY)",
    ],
)
def test_each_kind_of_bare_call_is_seen(source: str) -> None:
    assert bare_calls(source) == 1
    assert bare_calls("open_regular(path).read(); read_regular(path); path.unlink()") == 0
