"""Servers that run: memcached and the engine's own, and programs that only pretend."""

import contextlib
import getpass
import itertools
import os
import shlex
import shutil
import socket
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest

from cachemark.endpoints.servers import RunningServer, parse_spec, running
from cachemark.endpoints.servers.control_connection import Control
from cachemark.endpoints.servers.running import process_use
from cachemark.host import process
from cachemark.model.errors import TrialError, UnsupportedError
from tests.endpoints.servers.raw_requests import ask

USER = getpass.getuser()
MEMCACHED = shutil.which("memcached")
needs_memcached = pytest.mark.skipif(MEMCACHED is None, reason="apt-get install memcached")

REAL = [
    pytest.param("memcached:threads=1,memory=16", marks=needs_memcached),
    pytest.param("memcached:threads=1,memory=16,unix=yes", marks=needs_memcached),
    pytest.param(
        f"command:{MEMCACHED} -l 127.0.0.1 -U 0 -c 100 -u {USER} -p {{port}}", marks=needs_memcached
    ),
    "embedded:io=events,threads=1,memory=16m",
    "embedded:io=blocking,memory=16m",
    "embedded:io=uring,threads=1,memory=16m",
    "embedded:io=busy,threads=1,memory=16m",
]


@pytest.mark.parametrize("text", REAL)
def test_a_server_starts_counts_and_ends(text: str) -> None:
    cpu = str(max(os.sched_getaffinity(0)))
    with running(parse_spec(text), cpus=cpu) as server:
        pid = server.pid
        assert pid is not None
        assert os.sched_getaffinity(pid) == {int(cpu)}
        assert server.facts.version
        assert server.facts.cpus == cpu
        assert server.facts.address == server.addresses[0]
        before = server.stats()
        assert int(before["pid"]) == pid
        assert ask(server.addresses[0], b"set k 0 0 1\r\nx\r\n", b"\r\n") == b"STORED\r\n"
        assert ask(server.addresses[0], b"get k\r\n", b"END\r\n").startswith(b"VALUE k 0 1")
        after = server.stats()
    rose = {name: int(after[name]) - int(before[name]) for name in ("cmd_get", "cmd_set")}
    assert rose == {"cmd_get": 1, "cmd_set": 1}
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("text", REAL)
def test_the_control_connection_is_not_counted_as_operations(text: str) -> None:
    with running(parse_spec(text)) as server:
        for _ in range(3):
            stats = server.stats()
    assert {stats[name] for name in ("cmd_get", "cmd_set", "get_hits", "get_misses")} == {"0"}


@pytest.mark.parametrize("text", REAL)
def test_the_resource_use_of_a_server_is_reported(text: str) -> None:
    with running(parse_spec(text)) as server:
        first = server.use()
        for _ in range(50):
            server.stats()
        second = server.use()
        assert first is not None
        assert second is not None
        assert second.cpu_ns > first.cpu_ns > 0
        assert second.rss_peak_bytes >= second.rss_bytes > 0
        assert second.threads >= 1
    assert server.pid is not None
    assert process_use(server.pid) is None


@needs_memcached
def test_two_servers_have_different_ports() -> None:
    spec = parse_spec("memcached:threads=1,memory=16")
    with running(spec) as one, running(spec) as two:
        assert one.addresses != two.addresses


def test_a_killed_server_is_an_error_with_its_exit_status() -> None:
    with running(parse_spec("embedded:memory=16m")) as server:
        assert server.pid is not None
        os.kill(server.pid, 9)
        with pytest.raises(TrialError, match="exited with status -9"):
            _until_it_fails(server)


def _until_it_fails(server: RunningServer) -> None:
    while True:
        server.stats()


def test_the_engine_ends_with_its_context_even_on_an_error() -> None:
    pids: list[int | None] = []

    def fail() -> None:
        with running(parse_spec("embedded:memory=16m")) as server:
            pids.append(server.pid)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    (pid,) = pids
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_missing_programs_are_unsupported_with_a_remedy(tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    for text in (f"memcached:binary={absent}", f"command:{absent} {{port}}"):
        with pytest.raises(UnsupportedError) as caught, running(parse_spec(text)):
            pass
        assert caught.value.remedy


def script(folder: Path, code: str) -> str:
    path = folder / "server.py"
    path.write_text(f"import os, socket, signal, sys\n{code}\n")
    return f"command:{shlex.quote(sys.executable)} {shlex.quote(str(path))} {{port}}"


ACCEPT = """
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    connection, _ = listener.accept()
    connection.recv(100)
    """


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("print('no room', file=sys.stderr); sys.exit(3)", r"exited with status 3: no room"),
        ("signal.pause()", r"not listening after 0\.3 s"),
        (ACCEPT + r"connection.sendall(b'HTTP/1.1 400 Bad Request\r\n')", "answered `version`"),
        (ACCEPT + "connection.close()", "broke off"),
        (ACCEPT + "connection.close(); os._exit(7)", "exited with status 7"),
        (ACCEPT + "signal.pause()", "timed out"),
    ],
)
def test_programs_that_do_not_serve_are_errors(tmp_path: Path, code: str, says: str) -> None:
    spec = parse_spec(script(tmp_path, code))
    with pytest.raises(TrialError, match=says), running(spec, ready_s=_patience(says)):
        pass


@pytest.mark.parametrize(
    ("last_words", "remedy"),
    [
        ('Illegal suboption "proxy_config=/etc/proxy.lua"', "configure --enable-proxy"),
        ("can't run as root without the -u switch", "add -u nobody"),
        ("[err] evsig_init_: socketpair: Too many open files", "connections=1024"),
        ("Maxconns setting is too low, use -c to increase.", "connections=1024"),
        ("no room", ""),
    ],
)
def test_last_words_of_memcached_have_a_remedy(
    tmp_path: Path, last_words: str, remedy: str
) -> None:
    spec = parse_spec(script(tmp_path, f"print({last_words!r}, file=sys.stderr); sys.exit(1)"))
    with pytest.raises(TrialError) as raised, running(spec, ready_s=20.0):
        pass
    assert last_words in raised.value.text
    assert remedy in raised.value.remedy
    assert bool(remedy) == bool(raised.value.remedy)


def _patience(says: str) -> float:
    """A short time where it must run out, a long one where it must not."""
    return 0.3 if "not listening" in says else 3.0 if "timed out" in says else 20.0


def test_a_program_that_dies_at_once_gets_another_port(tmp_path: Path) -> None:
    tried = tmp_path / "ports"
    code = f"open({str(tried)!r}, 'a').write(sys.argv[1] + ' '); sys.exit(1)"
    spec = parse_spec(script(tmp_path, code))
    with pytest.raises(TrialError, match="status 1"), running(spec):
        pass
    assert len(tried.read_text().split()) == 3


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "exited with status"),
        ("listening", "malformed announcement"),
        ('{"addresses": []}', "malformed announcement"),
    ],
)
def test_a_malformed_announcement_of_the_engine_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, says: str
) -> None:
    engine = tmp_path / "engine"
    engine.write_text(f"#!{sys.executable}\nprint({line!r}) if {line!r} else None\n")
    engine.chmod(0o755)
    monkeypatch.setenv("CACHEMARK_ENGINE", str(engine))
    with pytest.raises(TrialError, match=says), running(parse_spec("embedded")):
        pass


@contextlib.contextmanager
def answering(*replies: bytes) -> Generator[str]:
    """A peer that answers the requests of one connection with these bytes, in turn."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with listener.accept()[0] as connection:
                for reply in itertools.cycle(replies):
                    if not connection.recv(100):
                        return
                    connection.sendall(reply)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize("reply", [b"ERROR\r\n", b"ERROR no such command\r\n"])
def test_a_server_that_does_not_know_stats_has_none(reply: bytes) -> None:
    with answering(reply) as address, contextlib.closing(Control(address)) as control:
        assert not control.stats()
        assert not control.stats()


def test_a_server_that_refuses_stats_later_is_an_error() -> None:
    replies = b"STAT cmd_get 1\r\nEND\r\n", b"ERROR\r\n"
    with answering(*replies) as address, contextlib.closing(Control(address)) as control:
        assert dict(control.stats()) == {"cmd_get": "1"}
        with pytest.raises(TrialError, match="answered `stats`"):
            control.stats()


def test_a_remote_server_is_used_and_not_ended() -> None:
    with running(parse_spec("embedded:memory=16m")) as ours:
        with running(parse_spec(f"remote:{ours.addresses[0]}")) as remote:
            assert remote.pid is None
            assert remote.use() is None
            assert remote.facts.version == ours.facts.version
            assert remote.stats()["pid"] == str(ours.pid)
        assert ours.stats()


def test_an_unreachable_remote_server_is_an_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with (
            pytest.raises(TrialError, match="cannot connect"),
            running(parse_spec(f"remote:{address}")),
        ):
            pass


def accepts(path: Path) -> bool:
    """Whether a server listens there; its file is there a moment before that."""
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(path)) == 0


@needs_memcached
def test_a_remote_server_can_be_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    command = [str(MEMCACHED), "-s", str(path), "-u", USER, "-t", "1", "-m", "16", "-c", "100"]
    with process.start(command):
        while not accepts(path):
            os.sched_yield()
        with running(parse_spec(f"remote:unix:{path}")) as server:
            assert server.addresses == [f"unix:{path}"]
            assert "cmd_get" in server.stats()


def test_the_embedded_server_logs_the_traffic_of_each_connection(tmp_path: Path) -> None:
    log = tmp_path / "traffic"
    with running(parse_spec(f"embedded:io=blocking,traffic_log={log}")) as server:
        assert ask(server.addresses[0], b"get a\r\n", b"END\r\n") == b"END\r\n"
    lines = [msgspec.json.decode(line) for line in log.read_bytes().splitlines()]
    # The other connection is the orchestrator's own.
    (seen,) = [line for line in lines if line["bytes_in"] == len(b"get a\r\n")]
    assert (seen["turns"], seen["reads"], seen["bytes_out"]) == (1, 1, len(b"END\r\n"))
    assert (seen["segments"]["data_in"], seen["segments"]["data_out"]) == (1, 1)
