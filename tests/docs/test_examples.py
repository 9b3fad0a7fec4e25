"""The examples that are programs for other tools: what they name is there."""

import shutil
import subprocess
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT

EXAMPLES = ROOT / "docs" / "examples"
COMPARE = ".github/actions/compare"


@pytest.mark.skipif(shutil.which("cc") is None, reason="apt-get install gcc")
def test_the_program_in_c_fits_the_header() -> None:
    """It compiles without a warning; the shared library has tests of its own."""
    include = ROOT / "engine" / "crates" / "shared_store" / "include"
    command = ["cc", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", include]
    ended = subprocess.run(
        [*command, EXAMPLES / "shop.c"], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_pull_request_gives_the_action_its_inputs() -> None:
    text = (EXAMPLES / "pull-request.yml").read_text(encoding="utf-8")
    action: dict[str, Any] = yaml.safe_load((ROOT / COMPARE / "action.yml").read_text("utf-8"))
    steps: list[dict[str, Any]] = yaml.safe_load(text)["jobs"]["compare"]["steps"]
    (given,) = (step["with"] for step in steps if COMPARE in step.get("uses", ""))
    needed = {name for name, one in action["inputs"].items() if one.get("required")}
    assert needed <= set(given) <= set(action["inputs"])
    checkouts = {step["with"]["path"] for step in steps if "checkout" in step.get("uses", "")}
    assert checkouts == {given["base"], given["head"]}
