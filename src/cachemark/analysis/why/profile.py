"""The functions in which a client spends its CPU time, by the classes of classes.toml. Pure."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import msgspec

from cachemark.analysis.statistics.interval import proportion_interval
from cachemark.analysis.why.estimate import CONFIDENCE, CountEstimate
from cachemark.model.counts import FoldedStacks
from cachemark.model.shipped_rows import shipped_rows

OTHERS, OWN_LOOP = "other functions", "cachemark's loop"
_HEAVIEST = 5


class ClassRule(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"name": "class"}
):
    """A rule; classes.toml explains its fields."""

    name: str = ""
    languages: list[str] = []
    frame: str


class ProfileShares(msgspec.Struct, frozen=True, kw_only=True):
    """The share of samples of each class, in percent, and the heaviest functions of the library.

    The largest share is first. A sample counts for the innermost function of the library in it, so
    the time of what it calls is its own. The errors come from the sampling (99 %).
    """

    client: str
    kind: str
    sampler: str = ""
    samples: int = 0
    classes: dict[str, CountEstimate] = {}
    functions: dict[str, CountEstimate] = {}
    failure: str = ""


def class_rules() -> tuple[ClassRule, ...]:
    """All rules, in their order."""
    return shipped_rows(Path(__file__).with_name("classes.toml"), "rule", ClassRule)


@cache
def rule_of(frame: str, language: str) -> ClassRule | None:
    """The first rule that knows a function; None if none does."""
    for rule in class_rules():
        if (not rule.languages or language in rule.languages) and re.search(rule.frame, frame):
            return rule
    return None


def class_of(stack: str, language: str) -> str:
    """The class of a stack: that of its innermost function with a class."""
    for frame in reversed(stack.split(";")):
        if (rule := rule_of(frame, language)) and rule.name:
            return rule.name
    return OTHERS


def library_function(stack: str, language: str) -> str:
    """The innermost function of the library in a stack; empty if there is none."""
    for frame in reversed(stack.split(";")):
        rule = rule_of(frame, language)
        if rule and not rule.languages and rule.name != OWN_LOOP:
            return frame
    return ""


def shares_of(profile: FoldedStacks) -> ProfileShares:
    """The shares of a profile."""
    classes, functions = Counter[str](), Counter[str]()
    for stack, count in profile.stacks.items():
        classes[class_of(stack, profile.language)] += count
        functions[library_function(stack, profile.language)] += count
    del functions[""]

    def share(count: int) -> CountEstimate:
        low, high = proportion_interval(count, profile.samples, CONFIDENCE)
        return CountEstimate(value=100 * count / profile.samples, error=50 * (high - low))

    heaviest = [(name, share(count)) for name, count in functions.most_common(_HEAVIEST)]
    return ProfileShares(
        client=profile.client,
        kind=profile.kind,
        sampler=profile.sampler,
        samples=profile.samples,
        classes={name: share(count) for name, count in classes.most_common()},
        functions={name: of for name, of in heaviest if of.value > of.error},
        failure=profile.failure,
    )
