"""Sockets in temporary folders: the kernel limits the length of their paths."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from cachemark.host.temporary import temporary_folder, temporary_socket

_LONGEST = 107
_BELOW = len("/cachemark-12345678/socket")


@pytest.mark.parametrize("over", [0, 1, 100], ids=["fits", "one byte too long", "much too long"])
def test_a_socket_has_a_path_that_the_kernel_takes(
    monkeypatch: pytest.MonkeyPatch, over: int
) -> None:
    with temporary_folder(Path("/tmp")) as folder:  # short, wherever the tests have theirs
        root = folder / ("d" * (_LONGEST - _BELOW - len(f"{folder}/") + over))
        root.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(root))
        with temporary_socket() as path, socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
            assert path.is_relative_to(root) == (over == 0)
            assert len(os.fsencode(path)) == _LONGEST or over
        assert not path.parent.exists()
