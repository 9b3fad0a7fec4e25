"""How servers are named: what is read, and what is refused with a remedy."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachemark.endpoints.servers import kinds, options_for, parse_spec
from cachemark.endpoints.servers.quickcached import QUIRKS as QUICKCACHED
from cachemark.endpoints.servers.quirks import QUIRKS
from cachemark.endpoints.servers.third_party import third_party_servers
from cachemark.model.errors import UnsupportedError, UsageError


def test_options_of_a_server_are_parsed() -> None:
    spec = parse_spec("memcached:threads=2,memory=64")
    assert (spec.kind, spec.options) == ("memcached", {"threads": "2", "memory": "64"})
    assert parse_spec("embedded:io=blocking,memory=2g").options["io"] == "blocking"
    assert parse_spec("embedded").options == {}


def test_clusters_and_proxies_are_parsed() -> None:
    spec = parse_spec("cluster:3:memcached:memory=64")
    assert (spec.kind, spec.count) == ("cluster", 3)
    assert spec.inner == parse_spec("memcached:memory=64")
    assert parse_spec("remote:a:1,unix:/b").details == "a:1,unix:/b"
    assert parse_spec("none").kind == "none"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("memcachedd", "did you mean 'memcached'"),
        ("", "kinds: "),
        ("memcached:thread=2", "did you mean 'threads'"),
        ("memcached:threads", "option=value"),
        ("memcached:threads=0", "at least 1"),
        ("memcached:memory=64k", "at least 1m"),
        ("memcached:memory=64q", "64m or 2g"),
        ("embedded:memory=1k", "at least 64k"),
        ("embedded:traffic_log=/a", "add io=blocking"),
        ("memcached:unix=perhaps", "yes or no"),
        ("memcached:tls_cert=/nowhere", "TLS needs tls_cert and tls_key"),
        ("memcached:tls_cert=/nowhere,tls_key=/nowhere", "tls_cert: no such file"),
        ("memcached:tls_cert=/a,tls_key=/b,unix=yes", "leave unix=yes out"),
        ("memcached:tls=perhaps", "tls is yes or mutual"),
        ("memcached:tls_name=a", "write tls=yes as well"),
        ("embedded:tls=mutual", "tls is yes"),
        ("embedded:tls=yes,tls_ca=/nowhere", "tls_ca: no such file"),
        ("remote:127.0.0.1:1,tls=yes,tls_client_key=/nowhere", "tls_client_cert and"),
        ("remote:127.0.0.1:1,tls_cert=/nowhere", "no option 'tls_cert'"),
        ("remote:unix:/tmp/socket,tls=yes", "TLS on a Unix socket"),
        ("memcached:auth=ann", "write auth=USER:FILE"),
        ("memcached:auth=ann:/nowhere", "auth: no such file"),
        ("memcached:sasl=yes", "sasl=yes without auth"),
        ("memcached:auth=ann:/etc/hostname,sasl=no", "write sasl=yes, or leave it out"),
        ("memcached:auth=ann:/etc/hostname,unix=yes", "leave unix=yes out"),
        ("embedded:auth=ann:/etc/hostname,sasl=yes", "no option 'sasl'"),
        ("nutcracker:memcached:auth=ann:/etc/hostname", "twemproxy does not log in"),
        ("nutcracker:memcached:tls=yes", "twemproxy has no TLS"),
        ("nutcracker:cluster:2:memcached:tls=yes", "twemproxy has no TLS"),
        ("distant", "no time or no server"),
        ("distant:memcached", "no time or no server"),
        ("distant:5:memcached", "'5' is no time"),
        ("distant:0ms:memcached", "write 1us to 800ms"),
        ("distant:1s:memcached", "write 1us to 800ms"),
        ("distant:1ms:none", "'none' has no distance"),
        ("distant:1ms:distant:1ms:memcached", "'distant' has no distance"),
        ("distant:1ms:memcached:unix=yes", "a Unix socket has no distance"),
        ("distant:1ms:remote:unix:/a", "a Unix socket has no distance"),
        ("embedded:io=fast", "events, blocking, uring or busy"),
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
        ("remote:a:1,", "not an address"),
        ("remote:a:1,b", "'b' is not an address"),
        ("remote:a:1,a:1", "is listed twice"),
        ("none:x", "no options"),
        ("cluster", "cluster:3:memcached"),
        ("cluster:3", "cluster:3:memcached"),
        ("cluster:0:memcached", "cluster:3:memcached"),
        ("cluster:65:memcached", "at most 64"),
        ("cluster:2:none", "'none' cannot"),
        ("cluster:2:remote:a:1", "HOST:PORT,HOST:PORT"),
        ("cluster:2:cluster:2:memcached", "'cluster' cannot"),
        ("cluster:2:memcached:threads=0", "at least 1"),
    ],
)
def test_bad_specs_say_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_spec(text)
    assert says in str(caught.value)


_TEXT = st.text(max_size=30)
_KINDS = st.sampled_from([kind.name for kind in kinds()])


def test_a_file_without_a_certificate_is_refused_before_the_run(tmp_path: Path) -> None:
    bad = tmp_path / "bad.pem"
    bad.write_text("no certificate\n")
    for options in (f"tls_ca={bad}", f"tls_client_cert={bad},tls_client_key={bad}"):
        with pytest.raises(UsageError, match=rf"{re.escape(str(bad))}.*") as refused:
            parse_spec(f"remote:127.0.0.1:1,tls=yes,{options}")
        assert refused.value.remedy == "they are PEM files"


@given(st.one_of(_TEXT, st.builds(lambda kind, rest: f"{kind}:{rest}", _KINDS, _TEXT)))
def test_any_text_is_a_spec_or_a_usage_error(text: str) -> None:
    assert _read_or_remedy(text)


def _read_or_remedy(text: str) -> str:
    try:
        return parse_spec(text).kind
    except UsageError as error:
        return error.remedy


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
