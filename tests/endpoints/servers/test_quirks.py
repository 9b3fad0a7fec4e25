"""Which clients can use a server that has peculiarities."""

from __future__ import annotations

import pytest

from cachemark.endpoints.servers import options_for
from cachemark.endpoints.servers.quickcached import QUIRKS as QUICKCACHED
from cachemark.endpoints.servers.quirks import QUIRKS
from cachemark.endpoints.servers.third_party import third_party_servers
from cachemark.model.errors import UnsupportedError


def test_a_capable_client_gets_the_option_for_a_quirk() -> None:
    assert options_for(["trailing_space"], ["get", "trailing_space"], "native") == {
        "trailing_space": "yes"
    }
    assert options_for(["cas_in_get"], ["get"], "native") == {}
    assert options_for([], [], "native") == {}


def test_an_incapable_client_is_unsupported() -> None:
    with pytest.raises(UnsupportedError, match="ruby/dalli cannot use this server, which refuses"):
        options_for(["cas_in_get", "trailing_space"], ["get"], "ruby/dalli")


def test_every_quirk_of_a_server_is_defined() -> None:
    named = {quirk for one in third_party_servers() for quirk in one.quirks} | set(QUICKCACHED)
    assert named == set(QUIRKS)
