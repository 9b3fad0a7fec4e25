"""Samples of a process's functions by Linux's perf, for languages that compile to machine code."""

import re
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from cachemark.host import process
from cachemark.host.cpu_meter import family

PROGRAM = "perf"
# Debian builds libraries without frame pointers; a virtual machine has no counter of cycles.
_HOW = ("--event=cpu-clock", "--freq=997", "--call-graph=dwarf,8192", "--delay=-1")
# perf writes its file after SIGTERM.
_WRITE_S = 60.0
_FRAME = re.compile(r"\s*[0-9a-f]+ (.+) \((.+)\)")
_NO_NAME, _KERNEL = "[unknown]", "[kernel]"
# A worker in Rust, or in C.
_OWN = re.compile(r"<?worker::.*|(?!_)[^:]+")


@contextmanager
def sampled(pid: int, path: Path) -> Generator[None]:
    """Sample a process and its children meanwhile; then the file has their stacks, or why not."""
    if not shutil.which(PROGRAM):
        path.write_text(f"# missing: no {PROGRAM}: apt-get install linux-perf\n")
        yield
        return
    data = path.with_suffix(".data")
    pids = map(str, family(pid))
    ours, theirs = socket.socketpair()
    number = theirs.fileno()
    options = [f"--pid={','.join(pids)}", f"--control=fd:{number},{number}", f"--output={data}"]
    command = [PROGRAM, "record", "--quiet", *_HOW, *options]
    with ours, process.start(command, pass_fds=[number]) as sampler:
        theirs.close()
        # It answers when it samples; the socket is closed if it has ended.
        with suppress(OSError):
            ours.send(b"enable\n")
            ours.recv(8)
        yield
        sampler.stop(_WRITE_S)
    said = " ".join(sampler.log_tail().split())
    path.write_text(_text(data, said))


def _text(data: Path, said: str) -> str:
    command = [PROGRAM, "script", "--no-inline", "--fields=ip,sym,dso", f"--input={data}"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    data.unlink(missing_ok=True)
    if shown.returncode:
        may = "it may sample as root, or where kernel.perf_event_paranoid is at most 2"
        return f"# missing: {PROGRAM}: {said or shown.stderr.strip()} ({may})\n"
    stacks = folded(shown.stdout)
    seen = "" if _KERNEL in "".join(stacks) else ", without the kernel"
    lines = [f"{stack} {count}\n" for stack, count in stacks.items()]
    return f"# sampler: {PROGRAM}{seen}\n{''.join(lines)}"


def folded(script: str) -> dict[str, int]:
    """How often `perf script` shows each stack, from the outermost function on."""
    stacks = Counter[str]()
    for sample in script.split("\n\n"):
        found = [_FRAME.fullmatch(line) for line in reversed(sample.split("\n"))]
        frames, file = list[str](), ""
        for name, path in [each.groups() for each in found if each]:
            # A function without a name belongs to the one that called it, in the same file.
            if name != _NO_NAME or path not in (file, _NO_NAME):
                frames.append(_frame(name, path))
            file = path
        if frames:
            stacks[";".join(frames)] += 1
    return dict(stacks)


def _frame(name: str, path: str) -> str:
    file = _KERNEL if path.startswith(_KERNEL[:-1]) else path.rpartition("/")[2]
    name = name.replace(";", ",")
    if file == "worker" and _OWN.fullmatch(name):
        file = f"cachemark/{name}"
    return f"{name} ({file})"
