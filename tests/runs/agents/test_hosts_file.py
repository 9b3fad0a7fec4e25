"""Hosts files: what cannot be played on is one error with its remedy, before anything starts."""

from pathlib import Path

import pytest

from cachemark.model.errors import UsageError
from cachemark.runs.agents.hosts_file import load_hosts
from tests.runs.agents.hosts_files import write_hosts

SERVER = ("s", "server", "127.0.0.1")
CLIENT = ("c", "client", "127.0.0.2")


def test_roles_and_addresses_are_read(tmp_path: Path) -> None:
    others = (("d", "client", "127.0.0.2"), ("e", "load", "127.0.0.3"))
    hosts = load_hosts(write_hosts(tmp_path, (SERVER, CLIENT, *others)))
    assert hosts.server.name == "s"
    assert [host.name for host in hosts.clients] == ["c", "d"]
    assert [host.name for host in hosts.generators] == ["e"]


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        ((SERVER,), "no host has the role client"),
        ((CLIENT,), "no host has the role server"),
        ((SERVER, CLIENT, ("t", "server", "127.0.0.1")), "two servers on one address: s and t"),
        ((SERVER, CLIENT, ("t", "server", "127.0.0.3")), "2 hosts have the role server: s, t"),
        ((SERVER, CLIENT, CLIENT), "two hosts have the name 'c'"),
        ((SERVER, ("c", "loads", "127.0.0.2")), "Invalid enum value 'loads'"),
        ((SERVER, ("c", "load", "127.0.0.2")), "no host has the role client"),
        ((SERVER, ("c", "client+load", "127.0.0.2")), "host 'c' has the roles client and load"),
        ((SERVER, ("c", "client", "server1")), "'server1' is no IPv4 address"),
    ],
)
def test_hosts_that_cannot_be_played_on(
    tmp_path: Path, hosts: tuple[tuple[str, str, str], ...], text: str
) -> None:
    path = write_hosts(tmp_path, hosts)
    with pytest.raises(UsageError) as caught:
        load_hosts(path)
    assert str(path) in caught.value.text
    assert text in caught.value.text
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('cpu = "0"', "unknown field `cpu`"),
        ('cpus = "3-1"', "'3-1' is not a set of CPUs"),
        ('cpus = "all"', "'all' is not a set of CPUs"),
        ("port = 70000", "<= 65535"),
    ],
)
def test_settings_that_are_wrong(tmp_path: Path, line: str, text: str) -> None:
    path = write_hosts(tmp_path, (SERVER, CLIENT))
    path.write_text(f"{path.read_text(encoding='utf-8')}{line}\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"hosts\.toml") as caught:
        load_hosts(path)
    assert text in caught.value.text


def test_agents_elsewhere_have_to_know_the_port(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="port 0 is only for hosts"):
        load_hosts(write_hosts(tmp_path, (SERVER, CLIENT), start="there"))


def test_only_agents_started_here_need_no_folder_of_certificates(tmp_path: Path) -> None:
    """Each run makes certificates for them; others would have none."""
    assert not load_hosts(write_hosts(tmp_path, (SERVER, CLIENT))).tls
    with pytest.raises(UsageError, match="needs certificates") as caught:
        load_hosts(write_hosts(tmp_path, (SERVER, CLIENT), port=1, start="there"))
    assert "hosts certs" in caught.value.remedy
    assert load_hosts(write_hosts(tmp_path, (SERVER, CLIENT), port=1, start="there", tls=True)).tls


@pytest.mark.parametrize("text", ["a" + ".a" * 20_000 + " = 1", "a = '" + "x" * 5_000_000 + "'"])
def test_a_file_that_would_take_the_memory_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"longer than|a key of more than"):
        load_hosts(path)


def test_a_device_without_an_end_is_refused() -> None:
    with pytest.raises(UsageError, match="longer than"):
        load_hosts(Path("/dev/zero"))
