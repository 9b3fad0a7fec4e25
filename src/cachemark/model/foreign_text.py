"""Text from others: names, versions and messages of clients, servers, workers and archives.

`clean` makes a text harmless for its target. Replaced characters stay readable: an escape character
becomes the four characters `\\x1b`.
"""

import re
from typing import Literal, TypeVar, cast

import msgspec

# `plain` is right for terminals, HTML, SVG, plots and texts for other programs.
Target = Literal["plain", "csv", "markdown"]

# Control characters except line feed and tab, characters that XML forbids, halves of surrogate
# pairs, marks that change the order in which a terminal shows text, and invisible characters, which
# make two names look alike. Writing systems and emoji need the joiners U+200C and U+200D.
_ASTRAL_NONCHARACTERS = "".join(
    f"{chr(plane * 0x10000 + 0xFFFE)}{chr(plane * 0x10000 + 0xFFFF)}" for plane in range(1, 17)
)
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\xad\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"
    f"\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff{_ASTRAL_NONCHARACTERS}]"
)
_MAX_NAME = 100
_LINE_END = re.compile("\r\n?")

# A spreadsheet reads a cell with such a beginning as a formula. Some skip leading spaces.
_FORMULA = re.compile("\\s*[=+@|%\uff1d\uff0b\uff0d\uff20-]")
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?%?|[+-]?(?:inf|nan)"
)

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
# `[text](address)`, and the definition `[label]: address` of `[text][label]`, where the colon may
# be ours. An odd number of backslashes before the bracket has made it harmless.
_LINK = re.compile(r"(?<!\\)((?:\\\\)*)\](?=\s*(?:[(:]|$))")
_SCRIPT = re.compile(r"(?i)\b(javascript|vbscript)(\s*):")


def clean(text: str, target: Target = "plain") -> str:
    """The text, harmless in `target`. A text that is harmless or already clean stays unchanged."""
    plain = _UNSAFE.sub(_escaped, _LINE_END.sub("\n", text))
    if target == "csv":
        return f"'{plain}" if _FORMULA.match(plain) and not _NUMBER.fullmatch(plain) else plain
    if target == "markdown":
        unlinked = _LINK.sub(r"\1\\]", _TAG.sub("&lt;", plain))
        return _SCRIPT.sub(r"\1\2\\:", unlinked)
    return plain


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def in_a_sentence(text: str) -> str:
    """A name or a version for a message of cachemark: on one line, and not long."""
    line = clean(" ".join(text.split()))
    return line if len(line) <= _MAX_NAME else f"{line[:_MAX_NAME]}…"


def json_escaped(text: str) -> str:
    """The same JSON with unsafe characters as escapes: decoding gives the same values."""
    return _UNSAFE.sub(_json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


_Value = TypeVar("_Value")


def clean_all(value: _Value, target: Target = "plain") -> _Value:
    """A value with every text inside of structs, lists, tuples and dicts clean for `target`."""
    return cast("_Value", _cleaned(value, target))


def _cleaned(value: object, target: Target) -> object:
    if isinstance(value, str):
        return clean(value, target)
    if isinstance(value, msgspec.Struct):
        return _cleaned_struct(value, target)
    if isinstance(value, dict):
        entries = cast("dict[object, object]", value).items()
        return {_cleaned(key, target): _cleaned(item, target) for key, item in entries}
    if isinstance(value, list):
        return [_cleaned(item, target) for item in cast("list[object]", value)]
    if type(value) is tuple:
        return tuple(_cleaned(item, target) for item in cast("tuple[object, ...]", value))
    return value


def _cleaned_struct(value: msgspec.Struct, target: Target) -> msgspec.Struct:
    fields = {name: getattr(value, name) for name in value.__struct_fields__}
    changed = {name: _cleaned(old, target) for name, old in fields.items()}
    return msgspec.structs.replace(value, **changed)
