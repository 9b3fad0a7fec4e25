"""The engine measures one call of each kind."""

from __future__ import annotations

import pytest

from cachemark.host.placement import usable_cpus
from cachemark.model.counts import COSTING, UnitCosts
from cachemark.model.errors import UsageError
from cachemark.runs.counting.counting import measured_unit_costs

# Found by taking one measurement from another, which a busy machine can make too small.
DERIVED = {"sends", "switches"}


def test_each_call_that_is_made_alone_has_a_cost() -> None:
    cpus = usable_cpus()
    costs = measured_unit_costs(str(cpus[0]), str(cpus[-1]))
    measured = {name for name in UnitCosts.__struct_fields__ if getattr(costs, name)}
    assert measured | DERIVED == COSTING | {"allocations"}


def test_a_cpu_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(UsageError, match="unit-costs: "):
        measured_unit_costs("1023", "")
