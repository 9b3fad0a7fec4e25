"""`compare --play`: two builds of one client or server, played in turns in the same sittings."""

from pathlib import Path

import msgspec

from cachemark.analysis.rounds.answers import Answers
from cachemark.analysis.rounds.texts import figure_words, pair_text, twice_text
from cachemark.cli.overrides import Overrides, apply
from cachemark.cli.play import planned_shown, play_shown
from cachemark.cli.why import counted_report
from cachemark.endpoints.clients import parse_client, registry
from cachemark.host import process
from cachemark.model import suites
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Outcome
from cachemark.report.compare import ComparisonReport, Gate, compare_in_turns, gated
from cachemark.report.compare.gate import is_not_worse
from cachemark.report.rounds import run_answers, sitting_seconds
from cachemark.report.why.document import first_sentences
from cachemark.runs.play import new_job

# A build is worse if one of these figures settles as worse, unless --gate names others.
_GATED = ("rate", "client-cpu", "server-cpu")


class Builds(msgspec.Struct, frozen=True, kw_only=True):
    """Two clients or two servers to compare: the first is the base, the second the head."""

    client: tuple[str, ...]
    server: tuple[str, ...]
    margin: float | None
    max: str | None
    out: Path


def compare_builds(builds: Builds, gate: Gate) -> tuple[ComparisonReport, str]:
    """Play both; returns the comparison, and its answers in words, if any. Raises UsageError."""
    experiment = _experiment(builds)
    plan, parties = planned_shown(experiment)
    outcomes = play_shown(new_job(plan, parties, builds.out))
    answers = run_answers(experiment, outcomes)
    decides = gate if gate.figures else msgspec.structs.replace(gate, figures=_GATED)
    names = builds.client if len(builds.client) == 2 else builds.server
    compared = compare_in_turns(answers, outcomes, (names[0], names[1]), decides)
    if compared.rows and any(of.answer == "worse" for _, of in gated(compared)):
        compared = msgspec.structs.replace(compared, notes=reasons(experiment))
    return compared, _text(answers, compared, outcomes) if compared.rows else ""


def reasons(experiment: Experiment) -> list[str]:
    """The first sentence of `cachemark why` on each kind of operation; empty if it has none."""
    try:
        alone = msgspec.structs.replace(experiment, twice="")
        report = counted_report(alone, of_servers=len(experiment.servers) > 1)
    except UsageError as error:
        return [f"The causes could not be counted: {error.text}."]
    return first_sentences(report)


def _experiment(builds: Builds) -> Experiment:
    engine = process.binary_path()
    known = registry(engine)
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
    whole = suites.find(suites.BASE)
    changed = apply(
        whole, overrides, lambda text: parse_client(text, known).client.in_process, engine
    )
    head = (clients if len(clients) == 2 else servers)[-1]
    question = f"Is {head} slower than the base?"
    return msgspec.structs.replace(changed, name="compare", question=question)


def _text(found: Answers, compared: ComparisonReport, outcomes: list[Outcome]) -> str:
    """Every ratio in a sentence, the A/A test, and what the gated figures say."""
    seconds = sitting_seconds(outcomes)
    group = found.groups[0]
    lines = [
        pair_text(pair.reversed(), group.question, found.rule, seconds)
        for of in group.rankings
        for pair in of.pairs
        if pair.ratio is not None
    ]
    lines += [line for of in group.rankings if (line := twice_text(of, group.question))][:1]
    margin = f"{compared.margin_percent:g} %"
    worse, unsettled = (_gated_words(compared, answer) for answer in ("worse", "open"))
    lines.append(
        f"Worse, and the estimate is beyond the margin of {margin}: {', '.join(worse)}."
        if worse
        else f"No figure is shown to be worse with an estimate beyond the margin of {margin}."
    )
    if good := [
        figure_words(of.figure)
        for _, of in gated(compared)
        if of.answer != "worse" and is_not_worse(of, compared.margin_percent)
    ]:
        lines.append(f"Not worse by more than {margin}: shown for {', '.join(good)}.")
    if left := [words for words in unsettled if words not in good]:
        lines.append(f"Not settled, so the build is not proven to be as good: {', '.join(left)}.")
    return "\n".join([*lines, *compared.notes]) + "\n"


def _gated_words(compared: ComparisonReport, answer: str) -> list[str]:
    return [figure_words(of.figure) for _, of in gated(compared) if of.answer == answer]
