"""Names and messages as somebody might choose them who means harm, or has an odd keyboard."""

import unicodedata
from collections.abc import Sequence

import msgspec

from cachemark.model.outcome import Outcome
from cachemark.model.run_header import HostFacts, RunHeader
from tests.builders.outcomes import experiment, header, measured, missing

TERMINAL = ("\x1b]0;owned\x07", "\x1b[2J\x1b[H", "\x9b31mred", "a\rb", "bell\x07", "\u202egnp.exe")
XML = ("\x00nul", "\ufffe", "\uffff", "]]>", "</svg><script>1</script>", "&#0;", "\U0001fffe")
FORMULAS = ("=cmd|'/c calc'!A1", "+1+cmd", "-1+cmd", "@SUM(A1)", "  =1+1", "\t=1+1", "\uff1d1+1")
MARKDOWN = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x] (JavaScript :alert(1))",
    "[x]: javascript:alert(1)",
    "\\\\](javascript:alert(1))",
    "![x](https://example.invalid/x.png)",
    "<javascript:alert(1)>",
    "a | b\n# title",
)
MARKUP = (
    "[/bold]",
    "[red]x[/red]",
    ":smile:",
    "{{7*7}}",
    "{% raw %}",
    "%s%n",
    "'; DROP TABLE run;--",
)
INVISIBLE = ("native\u200b", "\ufeffnative", "na\xadtive", "\u2060", "\U000e0041", "\ufff9x\ufffb")
ODD = ("naïve 🙂", "e\u0301", "x" * 3000, " ", "👩\u200d🔬")
CORPUS = (*TERMINAL, *XML, *FORMULAS, *MARKDOWN, *MARKUP, *INVISIBLE, *ODD)


def is_unsafe(text: str) -> bool:
    """Whether a character of it may move a terminal's cursor, change its order, or break XML."""
    return any(map(_is_unsafe, set(text)))


def _is_unsafe(character: str) -> bool:
    code = ord(character)
    return (
        (unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t")
        or unicodedata.bidirectional(character) in ("LRE", "RLE", "LRO", "RLO", "PDF")
        or unicodedata.bidirectional(character) in ("LRI", "RLI", "FSI", "PDI")
        or (unicodedata.category(character) == "Cf" and _is_invisible(code))
        or code & 0xFFFE == 0xFFFE
        or 0xFDD0 <= code <= 0xFDEF
    )


def _is_invisible(code: int) -> bool:
    """Whether a format character shows nothing, and no writing system and no emoji needs it."""
    general = 0x200B <= code < 0x2070 and code not in (0x200C, 0x200D)
    return general or code in (0xAD, 0xFEFF, 0xFFF9, 0xFFFA, 0xFFFB) or 0xE0000 <= code < 0xE1000


def hostile_run(texts: Sequence[str], blocks: int = 2) -> tuple[RunHeader, list[Outcome]]:
    """A run in which each text is a client's name, and all other texts of strangers, too."""
    grid = experiment(list(texts), blocks)
    outcomes: list[Outcome] = []
    for block in range(blocks):
        for text in texts:
            outcomes.append(_outcome(text, block, len(outcomes)))
    joined = " ".join(texts)
    head = header(msgspec.structs.replace(grid, question=joined, analysis=joined))
    host = msgspec.structs.replace(head.host, **_facts(head.host, joined))
    return msgspec.structs.replace(head, host=host, command=joined, cachemark=joined), outcomes


def _outcome(text: str, block: int, index: int) -> Outcome:
    made = measured(text, block, 300 + index, index=index)
    assert made.worker is not None
    assert made.server is not None
    worker = msgspec.structs.replace(
        made.worker, library=text, library_version=text, language=text, runtime=text
    )
    made = msgspec.structs.replace(
        made,
        worker=worker,
        server=msgspec.structs.replace(made.server, version=text),
        notes=[text],
        reasons=[text],
        log=text,
    )
    kind = index % 5
    if kind == 3:
        return msgspec.structs.replace(missing(made), reason=text, remedy=text)
    return msgspec.structs.replace(made, verdict="INVALID") if kind == 4 else made


def _facts(host: HostFacts, text: str) -> dict[str, str]:
    kept = ("name",)
    fields = {name: getattr(host, name) for name in host.__struct_fields__ if name not in kept}
    return {name: text for name, value in fields.items() if isinstance(value, str)}
