"""The suites: experiments shipped with cachemark, each a TOML file in this folder.

`NAME.toml` is the whole grid; `NAME-quick.toml`, where there is one, the small one.
"""

from __future__ import annotations

import difflib
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from cachemark import experiment
from cachemark.errors import UsageError
from cachemark.experiment import Experiment


def names() -> list[str]:
    """The names of all suites."""
    files = (entry.name for entry in resources.files(__name__).iterdir())
    stems = (name.removesuffix(".toml") for name in files if name.endswith(".toml"))
    return sorted(stem for stem in stems if not stem.endswith("-quick"))


def find(name: str, *, quick: bool = False) -> Experiment:
    """The suite of that name, or the experiment in that file. Raises UsageError."""
    if name.endswith(".toml") or "/" in name:
        if quick:
            raise UsageError("--quick is for suites", "leave it out, or make the file's grid small")
        return experiment.load(Path(name))
    known = names()
    if name not in known:
        near = difflib.get_close_matches(name, known, 1, 0.4)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UsageError(
            f"no suite {name!r}",
            f"{hint}suites: {', '.join(known)}; or name a file that ends .toml",
        )
    if quick and not _file(f"{name}-quick").is_file():
        raise UsageError(f"suite {name!r} has no small grid", "leave --quick out: it is quick")
    chosen = f"{name}-quick" if quick else name
    return experiment.parse(_file(chosen).read_text(encoding="utf-8"), f"suite {chosen}")


def published_figures(name: str) -> str:
    """The figures that the original of a suite once published, as TOML text."""
    return (resources.files(__name__) / "published" / f"{name}.toml").read_text(encoding="utf-8")


def _file(name: str) -> Traversable:
    return resources.files(__name__) / f"{name}.toml"
