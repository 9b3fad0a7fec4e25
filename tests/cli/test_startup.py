"""A verb starts quickly: what is slow to import is imported where it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = {"jinja2", "numpy", "prometheus_client", "scipy"}


@pytest.mark.parametrize(
    ("module", "needed"),
    [
        ("cachemark.cli", set()),
        ("cachemark.cli.run", {"numpy"}),
        ("cachemark.cli.report", {"numpy"}),
        ("cachemark.cli.compare", {"numpy"}),
    ],
)
def test_slow_packages_are_imported_late(module: str, needed: set[str]) -> None:
    code = f"import sys, {module}; print(*sys.modules, sep='\\n')"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert SLOW & set(ended.stdout.split()) <= needed
