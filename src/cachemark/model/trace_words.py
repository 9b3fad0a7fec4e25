"""The engine's facts about a trace, in words."""

import msgspec


class ToldSection(msgspec.Struct, frozen=True, kw_only=True):
    """A table and the notes below it."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    notes: list[str]
    prose: bool


class ToldTrace(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="told"):
    """The lines and tables of a terminal, and the figures for those who asked for JSON."""

    about: str
    title: str
    facts: list[tuple[str, str]]
    warnings: list[str]
    sections: list[ToldSection]
    figures: msgspec.Raw
