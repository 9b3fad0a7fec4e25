"""Is what a client's worker says true? Held against a scripted server over real sockets.

`cachemark-engine fidelity` asks the same of the native client in virtual time, exactly; here are
sockets, the kernel, and every worker in every language. See METHODOLOGY.md.
"""

from cachemark.checks.fidelity.attempts import findings, until_judged
from cachemark.checks.fidelity.cases import Case, cases
from cachemark.checks.fidelity.judge import Finding, Floor, milliseconds, named
from cachemark.checks.fidelity.play import Subject, find

__all__ = [
    "Case",
    "Finding",
    "Floor",
    "Subject",
    "cases",
    "find",
    "findings",
    "milliseconds",
    "named",
    "until_judged",
]
