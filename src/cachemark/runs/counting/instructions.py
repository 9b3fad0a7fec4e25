"""Instructions of one operation in a client's own code, as valgrind's callgrind counts them."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from cachemark.endpoints.clients import ClientSpec
from cachemark.endpoints.servers import RunningServer
from cachemark.host.cpu_meter import family
from cachemark.model.counts import Counts
from cachemark.model.errors import TrialError
from cachemark.runs.counting.player import CountingPlace, CountingPlayer, Work, playing

VALGRIND = "valgrind"
_OPTIONS = ("-q", "--tool=callgrind", "--trace-children=yes", "--combine-dumps=no")
# Plays of about 1 and 2 s, as threads beside the caller have instructions of their own.
_OPS, _MOST_OPS, _PLAY_NS, _DUMP_S = 100, 20_000, 1e9, 60
# A worker reads its tape a hundred times as slowly.
_READY_S = 600.0
_TOTAL = re.compile(r"^summary: (\d+)", re.MULTILINE)


def count_instructions(
    client: ClientSpec, works: Sequence[Work], server: RunningServer, place: CountingPlace
) -> dict[str, Counts]:
    """The instructions of one operation of each work, by its kind.

    Empty if valgrind cannot run the client.
    """
    with TemporaryDirectory(dir=place.folder) as folder:
        counter = [VALGRIND, *_OPTIONS, f"--callgrind-out-file={folder}/%p", "--"]
        try:
            with playing(
                client, place.worker_cpus, lambda of: [*counter, *of], ready_s=_READY_S
            ) as player:
                return {work.kind: _count(player, work, server, Path(folder)) for work in works}
        except (TrialError, OSError, subprocess.SubprocessError):
            return {}


def _count(player: CountingPlayer, work: Work, server: RunningServer, folder: Path) -> Counts:
    player.prepare(work, server)
    elapsed_ns = player.play(_OPS).elapsed_ns
    ops = min(_MOST_OPS, max(_OPS, round(_OPS * _PLAY_NS / elapsed_ns)))
    _instructions(player, _OPS, folder)
    short, long = (_instructions(player, of, folder) for of in (ops, 2 * ops))
    return Counts(instructions=(long - short) / ops)


def _instructions(player: CountingPlayer, ops: int, folder: Path) -> int:
    """The instructions since the last call, in which `ops` operations are played.

    Raises TrialError, SubprocessError.
    """
    player.play(ops)
    (worker,) = player.fleet.workers
    for pid in family(worker.pid):
        dump = ["vgdb", f"--pid={pid}", "dump"]
        subprocess.run(dump, check=True, capture_output=True, timeout=_DUMP_S)
    total = 0
    for path in folder.iterdir():
        total += sum(map(int, _TOTAL.findall(path.read_text("utf-8", "replace"))))
        path.unlink()
    return total
