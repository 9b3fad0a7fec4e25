"""The native client by TLS, UDP, and where it has to say who it is: against the real memcached."""

import getpass
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cachemark.endpoints.servers import parse_spec, running
from cachemark.host.process import binary_path
from cachemark.model.errors import TrialError
from tests.engine import drive_command

# At depth 1: memcached does not go on with what it has decrypted and not read, so requests that
# follow a long value in one record may wait for ever.
LOAD = ("--connections", "4", "--keys", "300", "--size", "0..40k", "--ops", "2000")
MIX = ("--mix", "get=5,set=1,mget=1,set_noreply=1")
_PATIENCE_S = 30

Start = Callable[..., tuple[subprocess.Popen[bytes], str]]


@contextmanager
def ends(child: subprocess.Popen[Any]) -> Generator[None]:
    try:
        yield
    finally:
        child.kill()
        child.wait()


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what


@pytest.fixture
def memcached(tmp_path: Path) -> Generator[Start]:
    """Start memcached with arguments: the process and its address."""
    children: list[subprocess.Popen[bytes]] = []

    def start(
        *arguments: str, port: str = "-1", udp: str = "0"
    ) -> tuple[subprocess.Popen[bytes], str]:
        ports = tmp_path / f"ports-{len(children)}"
        command = ["memcached", "-l", "127.0.0.1", "-p", port, "-U", udp, "-c", "100"]
        command += ["-u", getpass.getuser()]
        env = {**os.environ, "MEMCACHED_PORT_FILENAME": str(ports), "SASL_CONF_PATH": str(tmp_path)}
        children.append(subprocess.Popen([*command, *arguments], env=env))
        until(lambda: ports.exists() and "TCP" in ports.read_text(), "no memcached")
        (line,) = [line for line in ports.read_text().splitlines() if line.startswith("TCP INET:")]
        return children[-1], f"127.0.0.1:{line.rpartition(':')[2].strip()}"

    yield start
    for child in children:
        child.kill()
        child.wait()


def drive(address: str, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Load a server: exit code, the measured part, and what was said on stderr."""
    window = ("--warmup", "50ms", "--duration", "200ms", "--timeout", "5s", "--json", "--quiet")
    ended = drive_command.drive("--server", address, *LOAD, *MIX, *window, *arguments)
    document = json.loads(ended.stdout) if ended.stdout else {"measure": {}}
    return ended.returncode, document["measure"], ended.stderr


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=600
    )


def authority(folder: Path, name: str) -> Path:
    """A certificate that signs others, and its key beside it."""
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    files = ("-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
    openssl(folder, "req", "-x509", *kind, *files)
    return folder / f"{name}.pem"


@pytest.fixture
def certificates(tmp_path: Path) -> list[str]:
    """The files that memcached needs for TLS, signed by `ca.pem`."""
    authority(tmp_path, "ca")
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl(
        tmp_path, "req", *kind, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", "/CN=memcached"
    )
    (tmp_path / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    signer = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names")
    openssl(tmp_path, "x509", "-req", "-in", "leaf.csr", *signer, "-out", "leaf.pem", "-days", "2")
    files = f"ssl_chain_cert={tmp_path / 'leaf.pem'},ssl_key={tmp_path / 'leaf.key'}"
    return ["-Z", "-o", files]


@pytest.fixture
def users(tmp_path: Path) -> list[str]:
    """Files: with `users`, memcached asks for a name in text; `right` and `wrong` are passwords."""
    (tmp_path / "users").write_text("ann:secret\n")
    (tmp_path / "right").write_text("secret\n")
    (tmp_path / "wrong").write_text("guess\n")
    return ["-Y", str(tmp_path / "users")]


@pytest.mark.parametrize("wire", ["text", "binary", "meta"])
def test_tls_carries_every_protocol(
    memcached: Start, certificates: list[str], tmp_path: Path, wire: str
) -> None:
    _, address = memcached(*certificates)
    code, measure, said = drive(address, "--wire", wire, "--tls", str(tmp_path / "ca.pem"))
    assert code == 0, said
    assert all(kind["ok"] == kind["attempts"] > 0 for kind in measure["operations"].values())
    assert measure["operations"]["get"]["hits"] > 0


@pytest.mark.usefixtures("certificates")
def test_an_own_certificate_without_its_authority_names_the_option(tmp_path: Path) -> None:
    files = f"tls_cert={tmp_path / 'leaf.pem'},tls_key={tmp_path / 'leaf.key'}"
    spec = parse_spec(f"embedded:memory=16m,tls=yes,{files}")
    with pytest.raises(TrialError, match="CERTIFICATE_VERIFY_FAILED") as caught, running(spec):
        pass
    assert "tls_ca=/path" in caught.value.remedy


def test_only_the_given_certificates_are_trusted(
    memcached: Start, certificates: list[str], tmp_path: Path
) -> None:
    _, address = memcached(*certificates)
    stranger = authority(tmp_path, "stranger")
    code, _, said = drive(address, "--tls", str(stranger))
    assert (code, address in said, "certificate" in said) == (2, True, True), said
    code, _, said = drive(address, "--tls", "unverified")
    assert code == 0, said
    code, _, said = drive(address, "--tls", str(tmp_path / "ca.key"))
    assert (code, "the file contains no certificate" in said) == (2, True), said


def test_a_trusted_certificate_serves_though_it_is_of_a_ca(
    memcached: Start, tmp_path: Path
) -> None:
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    names = ("-subj", "/CN=own", "-addext", "subjectAltName=IP:127.0.0.1")
    openssl(tmp_path, "req", "-x509", *kind, *names, "-keyout", "own.key", "-out", "own.pem")
    own = tmp_path / "own.pem"
    _, address = memcached("-Z", "-o", f"ssl_chain_cert={own},ssl_key={tmp_path / 'own.key'}")
    code, _, said = drive(address, "--tls", str(own))
    assert code == 0, said
    code, _, said = drive(address, "--tls", str(own), "--tls-name", "elsewhere.example")
    assert (code, "NotValidForName" in said or "not valid for name" in said) == (2, True), said
    code, _, said = drive(address, "--tls", str(authority(tmp_path, "stranger")))
    assert (code, "certificate" in said) == (2, True), said


@pytest.mark.parametrize("wire", ["text", "meta"])
def test_the_text_protocol_logs_in_with_name_and_password(
    memcached: Start, users: list[str], tmp_path: Path, wire: str
) -> None:
    _, address = memcached(*users)
    code, _, said = drive(address, "--wire", wire, "--auth", f"ann:{tmp_path / 'right'}")
    assert code == 0, said
    code, _, said = drive(address, "--wire", wire, "--auth", f"ann:{tmp_path / 'wrong'}")
    assert (code, 'rejects the login of "ann"' in said) == (2, True), said
    assert "guess" not in said


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_run_names_the_login_that_a_server_wants(
    memcached: Start, users: list[str], certificates: list[str], tmp_path: Path, encrypted: bool
) -> None:
    _, address = memcached(*users, *(certificates if encrypted else []))
    options = f",tls=yes,tls_ca={tmp_path / 'ca.pem'}" if encrypted else ""
    with (
        pytest.raises(TrialError, match="it wants a login") as caught,
        running(parse_spec(f"remote:{address}{options}")),
    ):
        pass
    assert "add auth=USER:FILE to its name" in caught.value.remedy


@pytest.mark.skipif(not shutil.which("saslpasswd2"), reason="Debian's sasl2-bin is not here")
def test_the_binary_protocol_logs_in_with_sasl(
    memcached: Start, users: list[str], tmp_path: Path
) -> None:
    assert users
    database = tmp_path / "sasldb"
    subprocess.run(
        ["saslpasswd2", "-p", "-c", "-f", str(database), "-u", "localhost", "ann"],
        input=b"secret",
        check=True,
        timeout=600,
    )
    (tmp_path / "memcached.conf").write_text(
        "mech_list: plain\npwcheck_method: auxprop\nauxprop_plugin: sasldb\n"
        f"sasldb_path: {database}\n"
    )
    _, address = memcached("-S")
    asked = ("--wire", "binary", "--auth")
    code, _, said = drive(address, *asked, f"ann@localhost:{tmp_path / 'right'}")
    assert code == 0, said
    code, _, said = drive(address, *asked, f"ann@localhost:{tmp_path / 'wrong'}")
    assert (code, "rejects the login" in said) == (2, True), said


@pytest.mark.parametrize("way", ["plain", "users", "tls"])
def test_a_reconnection_logs_in_again(
    memcached: Start, certificates: list[str], users: list[str], tmp_path: Path, way: str
) -> None:
    """Killed in the window and started again: what failed is counted, and the run goes on."""
    asked = {
        "plain": ([], []),
        "users": (users, ["--auth", f"ann:{tmp_path / 'right'}"]),
        "tls": (certificates, ["--tls", str(tmp_path / "ca.pem")]),
    }
    serving, driving = asked[way]
    server, address = memcached(*serving)
    # The window is long, so that a slow machine starts the server within it, and mostly idle.
    window = ("--warmup", "0s", "--duration", "12s", "--timeout", "5s")
    work = ("--mix", "set=1", "--think", "1ms", "--json")
    command = [binary_path(), "drive", "--server", address, *LOAD, *window, *work, *driving]
    with (
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as child,
        ends(child),
    ):
        assert child.stderr is not None
        while "measure 1 s" not in child.stderr.readline():
            pass
        server.kill()
        server.wait()
        memcached(*serving, port=address.rpartition(":")[2])
        out, said = child.communicate(timeout=6000)
    assert child.returncode == 1, said
    measure = json.loads(out)["measure"]
    told = measure["operations"]["set"]
    assert told["attempts"] == told["ok"] + sum(told["errors"].values())
    assert told["errors"]["connection"] > 0
    assert measure["reconnects"] >= 4, measure["reconnects"]


def test_udp_reads(memcached: Start, tmp_path: Path) -> None:
    """Gets over UDP, of values that take many datagrams; a missing server is reported at once."""
    server, stream = memcached(udp="-1")  # -1: any port
    lines = (tmp_path / "ports-0").read_text().splitlines()
    port = next(line for line in lines if line.startswith("UDP INET:")).rpartition(":")[2].strip()
    datagrams = f"udp:127.0.0.1:{port}"
    sizes = ("--keys", "50", "--size", "0..9k", "--ops", "500", "--connections", "2", "--json")
    window = ("--warmup", "0s", "--duration", "300ms", "--quiet")

    def played(address: str, *arguments: str) -> tuple[int, str, str]:
        ended = drive_command.drive("--server", address, *sizes, *window, *arguments)
        return ended.returncode, ended.stdout, ended.stderr

    slowly = ("--timeout", "20s")
    assert (
        played(stream, "--mix", "get=1", *slowly)[0] == 0
    )  # stores them: some are too long for UDP
    gets = ("--no-prefill", "--mix", "get=1")
    code, out, said = played(datagrams, *gets, *slowly)
    assert code == 0, said
    counts = json.loads(out)["measure"]["operations"]["get"]
    assert counts["hits"] == counts["attempts"] > 0
    for more in (["--depth", "2"], ["--wire", "binary"], ["--io", "uring"], ["--mix", "mget=1"]):
        code, _, said = played(datagrams, "--no-prefill", *more)
        assert (code, "UDP" in said) == (2, True), said
    code, _, said = played(datagrams, "--mix", "get=1", *slowly)
    assert (code, "store them over TCP" in said) == (2, True), said
    server.kill()
    server.wait()
    code, _, said = played(datagrams, *gets, "--timeout", "300ms")
    assert (code, datagrams in said) == (2, True), said
