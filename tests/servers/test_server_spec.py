"""How servers are named: what is read, and what is refused with a remedy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachemark.errors import UsageError
from cachemark.servers import kinds, parse_spec


def test_options_are_read() -> None:
    spec = parse_spec("memcached:threads=2,memory=64")
    assert (spec.kind, spec.options) == ("memcached", {"threads": "2", "memory": "64"})
    assert parse_spec("embedded:io=blocking,memory=2g").options["io"] == "blocking"
    assert parse_spec("embedded").options == {}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("memcachedd", "did you mean 'memcached'"),
        ("", "kinds: "),
        ("memcached:thread=2", "did you mean 'threads'"),
        ("memcached:threads", "option=value"),
        ("memcached:threads=0", "at least 1"),
        ("memcached:memory=64m", "at least 1"),
        ("memcached:unix=perhaps", "yes or no"),
        ("embedded:io=fast", "events or blocking"),
        ("embedded:threads=-1", "at least 1"),
        ("embedded:memory=lots", "64m"),
        ("embedded:memory=0", "64m"),
        ("command:server --port 11211", "{port}"),
        ("command:", "{port}"),
        ("command:{port}", "PROGRAM"),
        ("command:server '{port}", "quotes"),
        ("remote", "HOST:PORT"),
        ("remote:localhost", "HOST:PORT"),
        ("remote:localhost:0", "HOST:PORT"),
        ("remote:localhost:65536", "HOST:PORT"),
        ("remote:unix:relative", "HOST:PORT"),
        ("remote:a:1,b:2", "name one"),
    ],
)
def test_bad_specs_say_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_spec(text)
    assert says in str(caught.value)


_TEXT = st.text(max_size=30)
_KINDS = st.sampled_from([kind.name for kind in kinds()])


@given(st.one_of(_TEXT, st.builds(lambda kind, rest: f"{kind}:{rest}", _KINDS, _TEXT)))
def test_any_text_is_a_spec_or_a_usage_error(text: str) -> None:
    assert _read_or_remedy(text)


def _read_or_remedy(text: str) -> str:
    try:
        return parse_spec(text).kind
    except UsageError as error:
        return error.remedy
