"""Are the times that a worker reports true? Compared with a scripted server over real sockets.

`cachemark-engine fidelity` does the same exactly, for the native client in virtual time. This is
for workers in every language, with real sockets and the kernel. See docs/methodology-times.md.
"""

from cachemark.checks.fidelity.cases import Case, cases
from cachemark.checks.fidelity.judge import FidelityResult, milliseconds, percentile_name
from cachemark.checks.fidelity.play import findings
