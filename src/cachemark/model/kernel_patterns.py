"""Lines of the kernel's log that report a problem, and the status of a check that finds one.

The doctor searches the log since boot; each trial searches the log of its own window.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from cachemark.model.machine_limits import Status
from cachemark.model.shipped_rows import shipped_rows

_MAX_CHARACTERS = 100


class KernelPattern(msgspec.Struct, frozen=True, kw_only=True):
    """A pattern to search for, and the status of the check if it is found.

    `window_pattern` matches further lines that are harmless at boot, but not in a window.
    `biases_comparison`: the problem affects some clients more than others.
    """

    name: str
    pattern: str
    status: Status
    remedy: str
    window_pattern: str = ""
    biases_comparison: bool = False

    def matches(self, line: str, *, within_window: bool) -> bool:
        """Whether a line of the log matches; `within_window`: the line is from a trial's window."""
        patterns = [self.pattern, self.window_pattern if within_window else ""]
        return any(pattern and re.search(pattern, line) for pattern in patterns)


def kernel_patterns() -> tuple[KernelPattern, ...]:
    """The patterns, read from kernel_patterns.toml."""
    path = Path(__file__).with_name("kernel_patterns.toml")
    return shipped_rows(path, "pattern", KernelPattern)


def matching_lines(lines: Iterable[str], *, within_window: bool = False) -> dict[str, list[str]]:
    """The matching lines of a log, by the name of the pattern, without prefix and time."""
    matches: dict[str, list[str]] = {}
    for line in lines:
        for kernel_pattern in kernel_patterns():
            if kernel_pattern.matches(line, within_window=within_window):
                text = " ".join(line.rpartition(";")[2].split())[:_MAX_CHARACTERS]
                matches.setdefault(kernel_pattern.name, []).append(text)
    return matches
