"""Programs that watch a process, strace and perf, end with the cachemark that started them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cachemark.host import process
from tests.host.test_process import FOREVER, gone, python

WATCHING = {
    "strace": "system_calls.attached([{pid}], Path({log!r}))",
    "perf": "perf.sampled({pid}, Path({log!r}))",
}


@pytest.mark.parametrize("tracer", WATCHING)
def test_a_killed_cachemark_leaves_no_tracer(tracer: str, tmp_path: Path) -> None:
    with process.start([sys.executable, "-c", FOREVER]) as watched:
        watching = WATCHING[tracer].format(pid=watched.pid, log=str(tmp_path / "log"))
        code = (
            "from pathlib import Path; from cachemark.host import perf, system_calls\n"
            f"with {watching}:\n    print(1, flush=True); {FOREVER}"
        )
        with subprocess.Popen(python(code), stdout=subprocess.PIPE) as parent:
            assert parent.stdout is not None
            begun = parent.stdout.readline()
            children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
            pids = [int(pid) for pid in children.read_text().split()] if begun else []
            parent.send_signal(signal.SIGKILL)
        if not pids:
            pytest.skip(f"{tracer} cannot watch a process here")
        left = [pid for pid in pids if not gone(pid)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert not left
        assert watched.exited() is None
