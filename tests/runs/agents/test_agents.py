"""Agents and the coordinator as users start them: they connect, are compared, or are refused."""

import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import msgspec
import pytest

from cachemark.host import process
from cachemark.host.placement import usable_cpus
from cachemark.model.errors import UsageError
from cachemark.runs.agents.certificates import certificate_files, write_certificates
from cachemark.runs.agents.check import require_fit
from cachemark.runs.agents.coordinator import Coordinator
from cachemark.runs.agents.identity import differences, identify
from cachemark.runs.agents.messages import Software
from tests.cli.in_process import Inside
from tests.runs.agents.hosts_files import write_hosts

HOSTS = (("s", "server", "127.0.0.1"), ("c", "client", "127.0.0.2"))


# No other test listens on this address, so a port that was free stays so.
COORDINATOR = "127.77.0.1"


def free_port() -> int:
    """A port of the coordinator's address."""
    with socket.create_server((COORDINATOR, 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def agent(file: Path, name: str) -> Generator[process.Child]:
    """Run `cachemark agent`; its stderr is kept."""
    command = [sys.executable, "-m", "cachemark", "agent", str(file), name, "--once"]
    with process.start(command) as child:
        yield child


def software(version: str = "1", engine: str = "e", source: str = "s") -> Software:
    """A made-up cachemark."""
    return Software(version=version, engine_sha256=engine, source_sha256=source)


def test_hosts_with_another_cachemark_are_named() -> None:
    others = {"a": software(), "b": software("2"), "c": software(engine="f", source="t")}
    assert differences(software(), others) == [
        "b: cachemark is 2, here it is 1",
        "c: the engine's hash is f, here it is e",
        "c: the hash of cachemark's sources is t, here it is s",
    ]


def test_cpus_that_a_host_lacks_are_named_before_the_run() -> None:
    usable = set(usable_cpus())
    whole, lacking = identify(""), identify("0-5000")
    assert whole.absent_cpus == []
    assert set(lacking.absent_cpus) == set(range(5001)) - usable
    assert identify(str(min(usable))).absent_cpus == []
    coordinator = mock.Mock(spec=Coordinator)
    coordinator.hosts = mock.Mock(hosts=[])
    coordinator.ask_each.return_value = {
        "c": msgspec.structs.replace(whole, absent_cpus=[7, 8]),
        "s": whole,
    }
    with pytest.raises(UsageError, match=r"^c: of its `cpus`, it may not use 7, 8\n") as caught:
        require_fit(coordinator)
    assert caught.value.remedy
    coordinator.ask_each.return_value = {"s": whole}
    assert require_fit(coordinator) == {"s": whole.facts}


@pytest.mark.slow("the coordinator waits for the agent that it refuses")
def test_agents_show_certificates_and_strangers_are_refused(inside: Inside, tmp_path: Path) -> None:
    """The stranger has certificates of another authority for the same names."""
    port = free_port()
    path = write_hosts(tmp_path, HOSTS, coordinator=COORDINATOR, port=port, start="there", tls=True)
    assert inside("hosts", "certs", str(path)).returncode == 0
    assert certificate_files(tmp_path / "certs", "c").key.stat().st_mode & 0o077 == 0
    other = tmp_path / "stranger"
    other.mkdir()
    stranger = write_hosts(
        other, HOSTS, coordinator=COORDINATOR, port=port, start="there", tls=True
    )
    assert inside("hosts", "certs", str(stranger)).returncode == 0
    with agent(path, "s") as known, agent(stranger, "c") as refused:
        ended = inside("hosts", "check", str(path), "--connect-s", "30")
        assert refused.wait(60)
        assert refused.exited() == 2
        assert known.wait(60)
        assert known.exited() == 0
    assert ended.returncode == 2
    assert "no agent has connected from c; refused was" in ended.stderr
    text = " ".join(refused.log_tail().split())
    assert "do not accept each other's certificates" in text


def test_certificates_pass_the_strict_checks_of_python_3_13(tmp_path: Path) -> None:
    write_certificates(tmp_path, ["s"])
    files = certificate_files(tmp_path, "s")
    command = ["openssl", "verify", "-x509_strict", "-CAfile", str(files.authority)]
    subprocess.run([*command, str(files.certificate)], check=True, capture_output=True)


def test_certificates_are_not_replaced(inside: Inside, tmp_path: Path) -> None:
    path = write_hosts(tmp_path, HOSTS, tls=True)
    assert inside("hosts", "certs", str(path)).returncode == 0
    before = (tmp_path / "certs" / "s.pem").read_bytes()
    again = inside("hosts", "certs", str(path))
    assert again.returncode == 2
    assert "has certificates already" in again.stderr
    assert (tmp_path / "certs" / "s.pem").read_bytes() == before


def test_without_hosts_nothing_of_dask_is_imported() -> None:
    script = (
        "import sys; from cachemark.cli import main\n"
        "try: main(['run', '--help'])\n"
        "except SystemExit: pass\n"
        "import cachemark.cli.run, cachemark.cli.play, cachemark.runs.play\n"
        "assert not {'dask', 'distributed', 'cryptography'} & set(sys.modules)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
