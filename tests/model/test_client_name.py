"""The parts of a client's name."""

import pytest

from cachemark.model.client_name import ClientName, parse_client_name


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("native", ClientName(id="native")),
        ("a/b@1.2", ClientName(id="a/b", version="1.2")),
        ("a/b@/home/x@y", ClientName(id="a/b", version="/home/x@y")),
        (
            "a/b@1.2@defaults?x=y#again",
            ClientName(id="a/b", version="1.2", own_settings=True, options="x=y", again=True),
        ),
        ("a/b?x=@defaults", ClientName(id="a/b", options="x=@defaults")),
        ("command:run it?@defaults", ClientName(id="command:run it?@defaults")),
        ("command:run it#again", ClientName(id="command:run it", again=True)),
    ],
)
def test_a_name_has_these_parts(text: str, parts: ClientName) -> None:
    assert parse_client_name(text) == parts


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("a/b@defaults", "a/b"),
        ("a/b@1.2@defaults?x=y", "a/b@1.2?x=y"),
        ("a/b#again", "a/b"),
        ("a/b?x=y", "a/b?x=y"),
    ],
)
def test_a_client_with_shared_settings_keeps_version_and_options(text: str, shared: str) -> None:
    assert parse_client_name(text).with_shared_settings == shared


def test_only_a_runtimes_null_is_the_loop_without_a_library() -> None:
    texts = ["python/null", "python/null?x=y", "null", "python/nullable", "command:python/null"]
    found = [text for text in texts if parse_client_name(text).is_null]
    assert found == ["python/null", "python/null?x=y"]
