"""Profiles as files: folded stacks, speedscope's JSON, pprof, and a page with flame graphs."""

import gzip
import re
from collections.abc import Iterable, Sequence

import msgspec
from markupsafe import Markup

from cachemark.analysis.why.profile import rule_of
from cachemark.model.counts import FoldedStacks
from cachemark.model.foreign_text import clean_all
from cachemark.report.html import style_sheet
from cachemark.report.html.environment import environment, page_file
from cachemark.report.html.render import script_policy

_PACKAGE = "cachemark.report.why"
_FRAME = re.compile(r"(.+) \((.+?)(?::(\d+))?\)")
_UNUSUAL = re.compile(r"[^\w.-]+")
_SCRIPTS = ("d3/d3-selection.min.js", "d3/d3-flamegraph.min.js", "flame.js")
_STYLES = ("d3/d3-flamegraph.css", "flame.css")


class _Frame(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    file: str = ""
    line: int = 0


def profile_files(profiles: Sequence[FoldedStacks]) -> dict[str, bytes]:
    """The contents of all files, by name; empty of no profile."""
    taken = [clean_all(each) for each in profiles if not each.failure]
    if not taken:
        return {}
    files: dict[str, bytes] = {}
    for number, each in enumerate(taken, 1):
        name = f"{number}-{_UNUSUAL.sub('-', each.client)}-{each.kind}"
        stacks = sorted(each.stacks.items())
        files[f"{name}.folded"] = "".join(f"{of} {count}\n" for of, count in stacks).encode()
        files[f"{name}.pb.gz"] = gzip.compress(_pprof(each), mtime=0)
    return {
        **files,
        "profiles.speedscope.json": msgspec.json.encode(_speedscope(taken)),
        "flames.html": _page(taken).encode("utf-8"),
    }


def _frame(text: str) -> _Frame:
    found = _FRAME.fullmatch(text)
    return _Frame(found[1], found[2], int(found[3] or 0)) if found else _Frame(text)


def _numbers(profiles: Iterable[FoldedStacks]) -> dict[str, int]:
    """The frames of all stacks, with a number for each from 0 on."""
    stacks = (stack for each in profiles for stack in each.stacks)
    frames = dict.fromkeys(frame for stack in stacks for frame in stack.split(";"))
    return {frame: number for number, frame in enumerate(frames)}


def _speedscope(profiles: Sequence[FoldedStacks]) -> dict[str, object]:
    """https://www.speedscope.app/file-format-schema.json."""
    numbers = _numbers(profiles)
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "cachemark",
        "shared": {"frames": [_frame(text) for text in numbers]},
        "profiles": [
            {
                "type": "sampled",
                "name": f"{each.client} {each.kind}",
                "unit": "none",
                "startValue": 0,
                "endValue": each.samples,
                "samples": [[numbers[one] for one in stack.split(";")] for stack in each.stacks],
                "weights": list(each.stacks.values()),
            }
            for each in profiles
        ],
    }


def _pprof(of: FoldedStacks) -> bytes:
    """A message `perftools.profiles.Profile`; numbers of strings, functions and places are ids."""
    texts = {"": 0}

    def text(of: str) -> int:
        return texts.setdefault(of, len(texts))

    numbers = _numbers([of])
    parts = [_message(1, _number(1, text("samples")), _number(2, text("count")))]
    for stack, count in of.stacks.items():
        ids = [_number(1, numbers[frame] + 1) for frame in reversed(stack.split(";"))]
        parts.append(_message(2, *ids, _number(2, count)))
    for frame, number in numbers.items():
        known, key = _frame(frame), _number(1, number + 1)
        parts.append(_message(4, key, _message(4, key, _number(2, known.line))))
        names = (_number(2, text(known.name)), _number(4, text(known.file)))
        parts.append(_message(5, key, *names, _number(5, known.line)))
    parts += [_bytes(6, each.encode("utf-8")) for each in texts]
    return b"".join(parts)


def _varint(value: int) -> bytes:
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + _varint(rest) if rest else bytes([low])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _message(field: int, *parts: bytes) -> bytes:
    return _bytes(field, b"".join(parts))


def _page(profiles: Sequence[FoldedStacks]) -> str:
    """The flame graphs of all profiles; one can be shown beside another."""
    classes = {
        frame: rule.name
        for each in profiles
        for frame in _numbers([each])
        if (rule := rule_of(frame, each.language))
    }
    data = msgspec.json.encode({"profiles": profiles, "classes": classes}).decode("utf-8")
    script = "\n".join(page_file(name, _PACKAGE) for name in _SCRIPTS)
    style = [style_sheet(), *(page_file(name, _PACKAGE) for name in _STYLES)]
    return (
        environment(_PACKAGE)
        .get_template("flame.html.jinja")
        .render(
            style=Markup("\n".join(style)),
            script=Markup(script),
            policy=script_policy(script),
            profiles=Markup(data.replace("<", "\\u003c")),
        )
    )
