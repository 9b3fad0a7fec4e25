"""Code that uses the files of the Ruby worker, run by itself."""

import subprocess

from tests.conftest import ROOT


def printed(code: str, *arguments: str) -> str:
    """The output of the code; it writes nothing to stderr."""
    ended = subprocess.run(
        ["ruby", "-e", code, *arguments],
        cwd=ROOT / "workers" / "ruby",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stderr == ""
    return ended.stdout
