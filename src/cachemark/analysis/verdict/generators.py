"""Load generators beside a measuring client: did they make the load, and what did both do?"""

import msgspec

from cachemark.analysis.verdict.open_loop import generator_delay, overload_findings
from cachemark.analysis.verdict.withholding import may_have_moved
from cachemark.model.experiment import Load
from cachemark.model.merging import merge_kinds
from cachemark.model.outcome import Finding
from cachemark.model.protocol import Done

LOAD_MISSED = "load-missed"
# The generators' own lag is judged at their median: it then delays most of the load.
_MEDIAN = 50.0


def with_generated(measure: Done, generated: Done | None) -> Done:
    """The counts of the measuring client and of the generators: what the server has counted."""
    if generated is None:
        return measure
    return msgspec.structs.replace(
        measure,
        operations=merge_kinds([measure.operations, generated.operations]),
        reconnects=measure.reconnects + generated.reconnects,
        renewed=measure.renewed + generated.renewed,
    )


def generated_findings(generated: Done | None, load: Load | None) -> list[Finding]:
    """OVERLOAD where the generators missed the rate of their load; a closed loop has none."""
    if generated is None or load is None or load.schedule == "closed":
        return []
    why = "; the generators themselves were late" if generators_were_late(generated) else ""
    return [
        msgspec.structs.replace(
            found, rule=LOAD_MISSED, text=f"the load missed its rate: {found.text}{why}"
        )
        for found in overload_findings(generated, load)
    ]


def generators_were_late(generated: Done) -> bool:
    """Whether the generators themselves, not the server, held the load up."""
    return any(may_have_moved(generated, _MEDIAN, delay) for delay in generator_delay(generated))
