"""Samples of a run's functions by py-spy, for `cachemark why --profile`.

CACHEMARK_PROFILE names the file for the stacks of each measured run.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
from contextlib import contextmanager
from pathlib import Path

# Threads that hold the interpreter: py-spy cannot tell well whether another one has a CPU.
_RATE_HZ = 500
_HERE = Path(__file__).resolve().parent
_PROGRAM = _HERE / ".venv" / "bin" / "py-spy"
_MISSING = "# missing: no py-spy: cachemark setup python\n"
_OTHER_INTERPRETER = "# missing: no sampler of PyPy: py-spy reads CPython alone\n"
_FILE = re.compile(r"\((/[^():]*)")


@contextmanager
def sampled(request):
    """Sample this process until the end of the context, if it is for a measured run."""
    path = os.environ.get("CACHEMARK_PROFILE")
    if not path or request["phase"] != "measure":
        yield
    elif sys.implementation.name != "cpython":
        Path(path).write_text(_OTHER_INTERPRETER)
        yield
    elif not _PROGRAM.exists():
        Path(path).write_text(_MISSING)
        yield
    else:
        yield from _by_py_spy(Path(path))


def _by_py_spy(path):
    raw = f"{path}.raw"
    options = ["--gil", "--function", "--full-filenames", "--format=raw", f"--rate={_RATE_HZ}"]
    command = [_PROGRAM, "record", *options, f"--pid={os.getpid()}", f"--output={raw}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as sampler:
        said = []
        for line in sampler.stdout:
            said.append(line)
            if b"Sampling process" in line:
                break
        try:
            yield
        finally:
            sampler.send_signal(signal.SIGINT)
            said.append(sampler.stdout.read())
    path.write_text(_stacks(Path(raw), b"".join(said).decode()))


def _stacks(raw, said):
    """py-spy's stacks, with files as the classes know them."""
    if not raw.exists():
        may = "it may trace as root, or where kernel.yama.ptrace_scope is 0"
        reason = " ".join(said.partition("Stack backtrace")[0].split())
        return f"# missing: py-spy: {reason} ({may})\n"
    lines = [f"# sampler: {subprocess.check_output([_PROGRAM, '--version'], text=True)}"]
    lines += [f"{_FILE.sub(_named, line)}\n" for line in raw.read_text().splitlines()]
    raw.unlink()
    return "".join(lines)


def _named(found):
    """A file by its place in this folder, in the standard library, or in a folder of modules."""
    places = [(f"{each}/", "") for each in sys.path if each not in ("", str(_HERE))]
    places += [(f"{sysconfig.get_path('stdlib')}/", "python/"), (f"{_HERE}/", "cachemark/")]
    fitting = [(len(place), name) for place, name in places if found[1].startswith(place)]
    length, name = max(fitting, default=(0, ""))
    return f"({name}{found[1][length:]}"
