"""Which requests are served, as a function of their headers."""

from pathlib import Path

import pytest

from cachemark.web.guard import has_session, refusal
from cachemark.web.settings import WebSettings, is_loopback

HOME = WebSettings(root=Path("results"))
ABROAD = WebSettings(root=Path("results"), host="bench.example", token="secret")
SESSION = {"cookie": f"cachemark={ABROAD.session}"}


def status(method: str, headers: dict[str, str], settings: WebSettings, path: str = "/runs") -> int:
    """200 if the request is served."""
    found = refusal(method, path, headers, settings)
    return found.status if found else 200


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1:5770", 200),
        ("localhost:5770", 200),
        ("[::1]:5770", 200),
        ("LOCALHOST", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example:5770", 421),
        ("[::1", 421),
        ("", 421),
    ],
)
def test_a_name_that_can_be_rebound_is_refused(host: str, expected: int) -> None:
    assert status("GET", {"host": host}, HOME) == expected


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("http://localhost:5770", 200),
        ("http://localhost:5771", 403),
        ("https://localhost:5770", 403),
        ("http://evil.example", 403),
        ("null", 403),
        (None, 403),
    ],
)
def test_a_post_comes_from_our_own_page(origin: str | None, expected: int) -> None:
    headers = {"host": "localhost:5770"} | ({"origin": origin} if origin else {})
    assert status("POST", headers, HOME) == expected
    assert status("GET", headers, HOME) == 200


def test_another_address_needs_the_session() -> None:
    host = {"host": "bench.example"}
    assert status("GET", host, ABROAD) == 401
    assert status("GET", {**host, "cookie": "cachemark=guess"}, ABROAD) == 401
    assert status("GET", {**host, "cookie": "cachemark=\xff"}, ABROAD) == 401
    assert status("GET", {**host, **SESSION}, ABROAD) == 200
    assert status("GET", host, ABROAD, "/login") == 200
    assert status("GET", host, ABROAD, "/assets/web.css") == 200
    assert status("GET", host, ABROAD, "/assetsecret") == 401
    assert not has_session({"cookie": "cachemark=secret"}, ABROAD)  # the token is not the session


def test_read_only_takes_nothing_but_the_token() -> None:
    headers = {"host": "localhost", "origin": "http://localhost"}
    only = WebSettings(root=Path("results"), read_only=True)
    assert status("POST", headers, only, "/import") == 403
    assert status("POST", headers, only, "/login") == 200
    assert status("GET", headers, only) == 200


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("bench", False)],
)
def test_which_addresses_need_no_token(host: str, expected: bool) -> None:
    assert is_loopback(host) == expected
