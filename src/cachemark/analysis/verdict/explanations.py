"""The meaning of each verdict and rule, and its remedy, for `cachemark explain`."""

from functools import cache
from pathlib import Path

import msgspec


class Explanation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`meaning`: the observation, and why it matters. `remedy`: the change that helps, if any."""

    meaning: str
    remedy: str = ""


class Explanations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of them by name. `states`: the ends of trials that have no verdict."""

    verdicts: dict[str, Explanation]
    states: dict[str, Explanation]
    rules: dict[str, Explanation]

    @property
    def names(self) -> list[str]:
        """The names of all."""
        return [*self.verdicts, *self.states, *self.rules]


@cache
def explanations() -> Explanations:
    """The explanations, read from explanations.toml."""
    path = Path(__file__).with_name("explanations.toml")
    return msgspec.toml.decode(path.read_bytes(), type=Explanations)
