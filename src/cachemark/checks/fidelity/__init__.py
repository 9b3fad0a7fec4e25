"""Is what a client's worker says true? Held against a scripted server over real sockets.

`cachemark-engine fidelity` asks the same of the native client in virtual time, exactly; here are
sockets, the kernel, and every worker in every language. See METHODOLOGY.md.
"""

from cachemark.checks.fidelity.attempts import findings, retry_until_judged
from cachemark.checks.fidelity.cases import Case, cases
from cachemark.checks.fidelity.judge import FidelityResult, Floor, milliseconds, percentile_name
from cachemark.checks.fidelity.play import ClientUnderTest, find

__all__ = [
    "Case",
    "ClientUnderTest",
    "FidelityResult",
    "Floor",
    "cases",
    "find",
    "findings",
    "milliseconds",
    "percentile_name",
    "retry_until_judged",
]
