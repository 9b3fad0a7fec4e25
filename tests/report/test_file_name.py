"""Names of cells as names of files: short enough, and different."""

from cachemark.report.cells import shortened


def test_a_short_name_stays_as_it_is() -> None:
    assert shortened("mixed_one_embedded_native_get") == "mixed_one_embedded_native_get"


def test_long_names_are_cut_and_stay_different() -> None:
    names = ["x" * 3000, "x" * 3001, "x" * 151]
    assert len(set(map(shortened, names))) == 3
    assert all(len(shortened(name)) <= 150 for name in names)
