"""Calibrations on disk: an append-only file of JSON lines beside the runs."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from cachemark.host.atomic_file import append_lines, made_folder
from cachemark.host.files import read_regular
from cachemark.model.calibration import Calibration
from cachemark.model.errors import refusing
from cachemark.runs.storage.store import CALIBRATIONS

_decoder = msgspec.json.Decoder(Calibration)


def append_calibration(root: Path, calibration: Calibration) -> Path:
    """Append a calibration, which is on disk when this returns. Raises UsageError."""
    path = root / CALIBRATIONS
    with refusing(f"{path}: cannot be written", "choose another --runs"), made_folder(root):
        append_lines(path, msgspec.json.encode(calibration) + b"\n")
    return path


def load_calibrations(root: Path) -> list[Calibration]:
    """All calibrations, oldest first, without an incomplete last line. Raises UsageError."""
    path = root / CALIBRATIONS
    lines: list[bytes] = []
    with refusing(f"{path}: cannot be read"), suppress(FileNotFoundError):
        lines = read_regular(path).split(b"\n")[:-1]
    calibrations: list[Calibration] = []
    for number, line in enumerate(lines, 1):
        with refusing(f"{path}:{number}: not a calibration", decodes=True):
            calibrations.append(_decoder.decode(line))
    return calibrations


def latest_calibrations(
    calibrations: Sequence[Calibration], host: str, clients: Iterable[str]
) -> list[Calibration]:
    """The latest for each client and number of callers on a host, in the order of `clients`."""
    wanted = list(dict.fromkeys(clients))
    newest = {
        (each.client, each.threads, each.connections, each.depth): each
        for each in calibrations
        if each.host == host
    }
    return [each for client in wanted for each in newest.values() if each.client == client]
