"""A program: cachemark without what only Linux has, as on macOS.

The argument is a list of command lines, as JSON. It prints the exit status of each, as JSON, and
the statuses of pages that `cachemark web` shows.
"""

import contextlib
import io
import json
import os
import select
import signal
import sys
from pathlib import Path

ONLY_LINUX = {
    os: ("sched_", "SCHED_", "pidfd_", "P_PIDFD", "memfd_", "eventfd", "posix_fadvise", "O_PATH"),
    select: ("epoll", "EPOLL"),
    signal: ("sigtimedwait", "sigwaitinfo", "pidfd_"),
}


def hide_linux() -> None:
    """Remove the functions, and the folders of the kernel."""
    for module, prefixes in ONLY_LINUX.items():
        for name in dir(module):
            if name.startswith(prefixes):
                delattr(module, name)
    sys.addaudithook(refuse_kernel_files)


def refuse_kernel_files(event: str, values: tuple[object, ...]) -> None:
    """Files below /proc and /sys cannot be opened or listed."""
    if event in ("open", "os.listdir", "os.scandir") and str(values[0]).startswith(
        ("/proc", "/sys/")
    ):
        raise FileNotFoundError(2, "there is no such file", str(values[0]))


def main(command_lines: list[list[str]], pages: list[str]) -> list[int]:
    """Run each, and open each page; the statuses."""
    hide_linux()
    from cachemark.host import prctl, process  # noqa: PLC0415 (what they need is gone now)

    prctl._libc = object()
    process._PROC = Path("/proc/of/no/process")
    return [*run(command_lines), *opened(pages)]


def opened(pages: list[str]) -> list[int]:
    """The status of each page of the store `results`."""
    from tests.web.serving import served  # noqa: PLC0415

    with served(Path("results")) as visitor:
        return [visitor.get(page).status for page in pages]


def run(command_lines: list[list[str]]) -> list[int]:
    """The exit status of each command line."""
    from cachemark import cli  # noqa: PLC0415

    statuses = list[int]()
    for arguments in command_lines:
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                cli.main(arguments)
            except SystemExit as ended:
                statuses.append(int(ended.code or 0))
    return statuses


if __name__ == "__main__":
    print(json.dumps(main(*json.loads(sys.argv[1]))))
