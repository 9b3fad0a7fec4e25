"""The documentation site, built once for the tests of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import docs_site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built pages."""
    folder = tmp_path_factory.mktemp("site")
    assert docs_site.build(folder) == 0
    return folder / "html"
