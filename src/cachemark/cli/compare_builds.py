"""`compare --play`: two builds of one client or server, played in turns in the same sittings."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cachemark.analysis.rounds.answers import Answers
from cachemark.analysis.rounds.contrast import RoundContrast
from cachemark.analysis.rounds.texts import figure_words, pair_text, twice_text
from cachemark.cli.overrides import Overrides, apply
from cachemark.cli.play import new_run, parties_of, play
from cachemark.endpoints.clients import parse_client, registry
from cachemark.host import process
from cachemark.model import suites
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Outcome
from cachemark.report.rounds import round_answers, sitting_seconds

# The work of a comparison is that of this suite.
_SUITE = "quick"
# A build is worse if it settles to be worse in one of these.
_JUDGED = ("rate", "client-cpu", "server-cpu")


class Builds(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared: two clients, or two servers; the first is the base, the second the head."""

    client: tuple[str, ...]
    server: tuple[str, ...]
    margin: float | None
    max: str | None
    out: Path


def compare_builds(builds: Builds) -> tuple[str, bool]:
    """Play them; the answer in words, and whether the head is worse. Raises UsageError."""
    experiment = _experiment(builds)
    parties = parties_of(experiment)
    run = new_run(experiment, parties, builds.out)
    outcomes = play(run, parties)
    found = round_answers(experiment, outcomes)
    pair = _pair(found)
    if found is None or not pair:
        raise UsageError("no sitting has a valid trial of both", _why(outcomes))
    head = [contrast.reversed() for contrast in pair]
    return _text(found, head, outcomes), any(map(_is_worse, head))


def _experiment(builds: Builds) -> Experiment:
    known = registry(process.binary_path())
    clients = builds.client or ("native",)
    servers = builds.server or ("embedded",)
    if sorted((len(clients), len(servers))) != [1, 2]:
        raise UsageError(
            "--play compares two clients on one server, or two servers with one client",
            "name --client twice, or --server twice: first the base, then the head",
        )
    overrides = Overrides(
        client=clients,
        server=servers,
        twice=clients[0],
        margin=builds.margin,
        max=builds.max,
        design="rounds",
    )
    whole = suites.find(_SUITE, quick=False)
    planned = apply(whole, overrides, lambda text: parse_client(text, known).client.in_process)
    head = (clients if len(clients) == 2 else servers)[-1]
    question = f"Is {head} slower than the base?"
    return msgspec.structs.replace(planned, name="compare", question=question)


def _pair(found: Answers | None) -> list[RoundContrast]:
    """Base / head by each figure that both have."""
    groups = found.groups if found else []
    return [
        contrast
        for group in groups
        for ranking in group.rankings
        for contrast in ranking.pairs
        if contrast.ratio is not None
    ]


def _is_worse(head: RoundContrast) -> bool:
    """Whether the head is settled to be worse than the base by more than the margin."""
    if head.figure not in _JUDGED:
        return False
    return head.answer == ("below" if head.figure == "rate" else "above")


def _text(found: Answers, head: list[RoundContrast], outcomes: list[Outcome]) -> str:
    group = found.groups[0]
    seconds = sitting_seconds(outcomes)
    lines = [pair_text(contrast, group.question, found.rule, seconds) for contrast in head]
    lines += [line for of in group.rankings if (line := twice_text(of, group.question))][:1]
    worse = [figure_words(contrast.figure) for contrast in head if _is_worse(contrast)]
    lines.append(
        f"Worse beyond the margin of {100 * found.rule.margin:g} %: {', '.join(worse)}."
        if worse
        else f"No regression beyond the margin of {100 * found.rule.margin:g} % is settled."
    )
    return "\n".join(lines) + "\n"


def _why(outcomes: list[Outcome]) -> str:
    reasons = (o.reason or "; ".join(o.reasons) for o in outcomes if o.verdict != "VALID")
    return next(filter(None, reasons), "")
