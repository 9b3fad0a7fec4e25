"""Memcached's relatives: those that are installed run for real, the others say what they need."""

import os
import shlex
import stat
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cachemark.endpoints.servers import (
    RunningServer,
    missing,
    nutcracker,
    parse_spec,
    quickcached,
    running,
)
from cachemark.endpoints.servers.third_party import third_party_servers
from cachemark.model.errors import TrialError, UnsupportedError, UsageError
from tests.endpoints.servers.raw_requests import ask

NAMED = [
    "yrmcds:threads=2,memory=64",
    "jmemcached:memory=16,heap=64",
    "infinispan:threads=1,memory=16",
    "nutcracker:embedded:memory=16m",
    "nutcracker:memcached:unix=yes",
]


def here(text: str) -> str:
    """The server, or the test is skipped with the reason that a user would see."""
    if absent := missing(parse_spec(text)):
        pytest.skip(f"{absent.reason}: {absent.remedy}")
    return text


@pytest.mark.parametrize("text", NAMED)
def test_a_server_stores_items_and_ends(text: str) -> None:
    with running(parse_spec(here(text))) as server:
        (address,) = server.addresses
        assert server.facts.kind == text.partition(":")[0]
        assert server.facts.version
        assert server.facts.address == address
        for _ in range(3):
            assert ask(address, b"set k 0 0 1\r\nx\r\n") == b"STORED\r\n"
        assert ask(address, b"get k\r\n", b"END\r\n") == b"VALUE k 0 1\r\nx\r\nEND\r\n"
        assert server.stats()["get_hits"] == "1"
        use = server.use()
        assert use is not None
        assert use.rss_bytes > 0
        ours = server.pids
    for pid in ours:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_the_option_threads_is_passed_on() -> None:
    with running(parse_spec(here("yrmcds:threads=3"))) as server:
        assert server.stats()["threads"] == "3"


def test_a_proxy_spreads_keys_over_a_cluster() -> None:
    spec = parse_spec(here("nutcracker:cluster:3:embedded:memory=16m,threads=1"))
    with running(spec, cpus=str(max(os.sched_getaffinity(0)))) as proxy:
        (address,) = proxy.addresses
        for number in range(60):
            assert ask(address, b"set k%d 0 0 1\r\nx\r\n" % number) == b"STORED\r\n"
        assert proxy.stats()["cmd_set"] == "60"
        behind = [member.control for member in proxy.members if member.control]
        sets = [int(control.stats()["cmd_set"]) for control in behind]
        assert len(sets) == 3
        assert all(sets)
        assert len(proxy.pids) == 4
        (cluster,) = proxy.facts.members
        assert [member.kind for member in cluster.members] == ["embedded"] * 3


def test_a_proxy_that_dies_is_named() -> None:
    with running(parse_spec(here("nutcracker:embedded:memory=16m"))) as server:
        os.kill(server.pids[0], 9)
        with pytest.raises(TrialError, match="nutcracker: the server exited with status -9"):
            _until_it_fails(server)


def _until_it_fails(server: RunningServer) -> None:
    while True:
        server.stats()


def test_the_proxys_configuration_names_every_server() -> None:
    text = nutcracker.configuration("127.0.0.1:1", ["127.0.0.1:2", "unix:/tmp/s"])
    assert "listen: 127.0.0.1:1\n" in text
    assert text.endswith("   - 127.0.0.1:2:1\n   - /tmp/s:1\n")


def test_every_registered_server_can_be_named_without_options() -> None:
    for one in third_party_servers():
        required = [name for name, option in one.options.items() if option.default is None]
        text = one.name + (":" + ",".join(f"{name}=/x" for name in required) if required else "")
        assert parse_spec(text).kind == one.name


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("emcache:binary=/x,memory=0", "'0' is no size"),
        ("emcache:binary=/x,memory=64k", "at least 1m"),
        ("yrmcds:thread=2", "did you mean 'threads'"),
        ("quickcached:cache=EhCache", "Whirlycott"),
        ("quickcached:jar=/x,mode=fast", "blocking or events"),
        ("quickcached:jar=/x,heap=0", "at least 1"),
        ("nutcracker", "nutcracker:memcached"),
        ("nutcracker:none", "behind a proxy"),
        ("nutcracker:nutcracker:memcached", "behind a proxy"),
    ],
)
def test_bad_specs_say_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_spec(text)
    assert says in str(caught.value)


def test_a_missing_program_is_unsupported_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("QUICKCACHED_HOME", raising=False)
    for text, remedy in (
        ("emcache", "put emcache on PATH"),
        ("quickcached:cache=Whirlycott", "set QUICKCACHED_HOME to the folder"),
    ):
        absent = missing(parse_spec(text))
        assert absent is not None
        assert remedy in absent.remedy
    for text in (
        f"emcache:binary={tmp_path}/emcache",
        f"quickcached:jar={tmp_path}/QuickCached-Server.jar",
        f"nutcracker:emcache:binary={tmp_path}/emcache",
        f"cluster:2:emcache:binary={tmp_path}/emcache",
    ):
        absent = missing(parse_spec(text))
        if text.startswith("nutcracker") and nutcracker.which(nutcracker.PROGRAM) is None:
            continue
        assert absent is not None
        assert absent.remedy
        with pytest.raises(UnsupportedError) as caught, running(parse_spec(text)):
            pass
        assert str(tmp_path) in caught.value.text
        assert caught.value.remedy == absent.remedy


# A program that only tells its version and its arguments, on the port in them.
_PRETENDER = """#!{python}
import os, socket, sys
words = sys.argv[1:]
port = int(words[words.index({flag!r}) + 1])
listener = socket.create_server(("127.0.0.1", port))
while True:
    connection, _ = listener.accept()
    connection.recv(100)
    said = " ".join(words) + " in " + " ".join(sorted(os.listdir()))
    connection.sendall(b"VERSION " + said.encode() + b"\\r\\n")
"""


def pretender(path: Path, flag: str) -> Path:
    path.write_text(_PRETENDER.format(python=sys.executable, flag=flag))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_emcache_gets_its_port_and_memory(tmp_path: Path) -> None:
    binary = pretender(tmp_path / "emcache", "--port")
    with running(parse_spec(f"emcache:binary={binary},memory=9")) as server:
        assert "--host 127.0.0.1" in server.facts.version
        assert "--mem 9" in server.facts.version
        assert server.facts.quirks == ["trailing_space"]
    with running(parse_spec(f"cluster:2:emcache:binary={binary}")) as cluster:
        assert cluster.facts.quirks == ["trailing_space"]
        assert "--mem 64" in cluster.facts.version


CONF = """<quickserver>
  <server-mode><blocking>true</blocking></server-mode>
  <application-configuration><property>
    <property-name>CACHE_IMPL_CLASS</property-name><property-value>one</property-value>
  </property></application-configuration>
  <application-jar-path>../dist/QuickCached-Server.jar</application-jar-path>
</quickserver>
"""


@pytest.fixture
def quickcached_jar(tmp_path: Path) -> Path:
    """A distribution as far as its folders go: `dist` with the jar, `conf` beside it."""
    for folder in ("conf", "dist"):
        (tmp_path / folder).mkdir()
    (tmp_path / "conf" / "QuickCached.xml").write_text(CONF)
    jar = tmp_path / "dist" / "QuickCached-Server.jar"
    jar.touch()
    return jar


def test_quickcached_runs_beside_a_copy_of_its_configuration(
    quickcached_jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    pretender(tmp_path / "bin" / "java", "-p")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    with running(parse_spec(f"quickcached:jar={quickcached_jar},heap=64")) as server:
        said = server.facts.version
        assert f"-Xmx64m -jar {quickcached_jar} -l 127.0.0.1 -p " in said
        assert said.endswith("in .lock conf")  # the folder's own lock, and what was copied
        assert server.facts.quirks == ["cas_in_get"]
    assert (tmp_path / "conf" / "QuickCached.xml").read_text() == CONF


@pytest.mark.parametrize("folder", [".", "dist"])
def test_quickcached_is_found_in_its_home(
    quickcached_jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (tmp_path / "bin").mkdir()
    pretender(tmp_path / "bin" / "java", "-p")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setenv("QUICKCACHED_HOME", str(tmp_path))
    jar = quickcached_jar.rename(tmp_path / folder / quickcached_jar.name)
    assert missing(parse_spec("quickcached")) is None
    with running(parse_spec("quickcached:cache=Whirlycott")) as server:
        assert f"-jar {jar} " in server.facts.version
    jar.unlink()
    absent = missing(parse_spec("quickcached"))
    assert absent is not None
    assert "is not on this machine" in absent.reason


def test_quickcacheds_options_change_the_copy(quickcached_jar: Path, tmp_path: Path) -> None:
    path = tmp_path / "copy.xml"
    path.write_text(CONF)
    quickcached.configure(path, quickcached_jar, {"mode": "events", "cache": "two"})
    root = ElementTree.parse(path).getroot()
    assert root.findtext("server-mode/blocking") == "false"
    assert root.findtext("application-configuration/property/property-value") == "two"
    assert root.findtext("application-jar-path") == str(quickcached_jar)


@pytest.mark.parametrize("text", ["<a>", "<quickserver/>"])
def test_a_configuration_without_the_setting_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "copy.xml"
    path.write_text(text)
    with pytest.raises(TrialError, match=r"QuickCached\.xml"):
        quickcached.configure(path, tmp_path, {"mode": "events"})


def test_quoted_words_of_a_command_stay_whole(tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    folder.mkdir()
    binary = pretender(folder / "emcache", "--port")
    with running(parse_spec(f"emcache:binary={binary}")) as server:
        assert server.facts.command[0] == str(binary)
    with running(parse_spec(f"command:{shlex.quote(str(binary))} --port {{port}}")) as server:
        assert server.facts.command[0] == str(binary)
