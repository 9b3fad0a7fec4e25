"""The identity of a cell's work: the settings that change what is measured."""

import msgspec

from cachemark.model.experiment import Keys, Load, Measure, Timing, Workload
from cachemark.model.work_identity import changed_settings, definition, fingerprint
from tests.builders.outcomes import measured

TRIAL = measured("a", 0, 100)


def test_the_definition_has_neither_defaults_nor_names() -> None:
    assert definition(TRIAL) == {"workload.mix": '{"get":9,"set":1}'}


def test_settings_that_change_the_work_change_the_fingerprint() -> None:
    fingerprints = {
        fingerprint(msgspec.structs.replace(TRIAL, **change))
        for change in (
            {},
            {"workload": Workload(name="mixed", mix={"get": 9, "set": 2})},
            {"workload": Workload(name="mixed", mix={"get": 9, "set": 1}, keys=Keys(count=5))},
            {"load": Load(name="one", depth=2)},
            {"load": Load(name="one", measure=Measure())},
            {"load": Load(name="one", measure=Measure(rate=5))},
            {"timing": Timing(measure_ms=5)},
            {"timing": Timing(timeout_ms=5)},
        )
    }
    assert len(fingerprints) == 8


def test_names_order_and_time_limits_do_not_change_the_fingerprint() -> None:
    same = (
        {"workload": Workload(name="other", mix={"set": 1, "get": 9}, loads=["one"])},
        {"load": Load(name="other", threads=1)},
        {"timing": Timing(ready_ms=5, silence_ms=5)},
    )
    for change in same:
        assert fingerprint(msgspec.structs.replace(TRIAL, **change)) == fingerprint(TRIAL)


def test_changed_settings_are_listed_with_both_values() -> None:
    before = definition(msgspec.structs.replace(TRIAL, load=Load(name="one", threads=4)))
    after = definition(msgspec.structs.replace(TRIAL, load=Load(name="one", depth=2)))
    assert changed_settings(before, after) == [
        "load.depth: default → 2",
        "load.threads: 4 → default",
    ]
