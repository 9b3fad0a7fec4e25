"""Logins: the options of a server that say who its clients are, and its own list of accounts.

A password is in a file of the user's. It is in no option, command line or message.
"""

import shutil
import socket
import subprocess
from pathlib import Path

import msgspec

from cachemark.model.errors import TrialError, UnsupportedError, UsageError

OPTIONS = ("auth", "sasl")
_BY_SASL = ("binary",)
_BY_TEXT = ("text", "meta")
_SASLPASSWD = "saslpasswd2"
_PASSWD_S = 30


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """How clients say who they are: a user, and the file whose first line is the password.

    `wires` are the protocols in which the server takes a login. `sasl`: it takes SASL only, and
    speaks the binary protocol only.
    """

    user: str
    file: str
    wires: tuple[str, ...]
    sasl: bool = False

    def worker_options(self, wire: str) -> dict[str, str]:
        """The options of a worker. Raises UnsupportedError for a protocol without a login here."""
        if wire not in self.wires:
            raise UnsupportedError(
                f"the server takes no login in the {wire} protocol",
                f"use --set loads.wire={self.wires[0]}, or a client that speaks it",
            )
        return {"auth": f"{self.user}:{self.file}"}

    def password(self) -> str:
        """The password. Raises UsageError, whose text never contains it."""
        try:
            lines = Path(self.file).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "no text"
            raise UsageError(f"auth: {self.file}: {reason}", _FORM) from error
        if not lines or not lines[0]:
            raise UsageError(f"auth: {self.file} is empty", _FORM)
        return lines[0]

    def request(self) -> bytes:
        """The bytes of a login, by SASL PLAIN or memcached's `set`, on a new connection."""
        user, password = self.user.encode(), self.password().encode()
        if self.sasl:
            message = b"\0" + user + b"\0" + password
            head = bytes([0x80, 0x21, 0, 5, 0, 0, 0, 0])
            return head + (5 + len(message)).to_bytes(4, "big") + bytes(12) + b"PLAIN" + message
        words = user + b" " + password
        return b"set auth 0 0 %d\r\n%b\r\n" % (len(words), words)


_FORM = "write auth=USER:FILE; the first line of the file is the password"


def check(text: str, options: dict[str, str]) -> None:
    """Refuse options of a login that make no sense. Raises UsageError."""
    where = f"server {text!r}"
    if options.get("sasl", "yes") != "yes":
        raise UsageError(f"{where}: sasl={options['sasl']}", "write sasl=yes, or leave it out")
    if "auth" not in options:
        if "sasl" in options:
            raise UsageError(f"{where}: sasl=yes without auth", _FORM)
        return
    user, _, file = options["auth"].partition(":")
    if not user or not file or " " in user:
        raise UsageError(f"{where}: auth={options['auth']}", _FORM)
    if not Path(file).is_file():
        raise UsageError(f"{where}: auth: no such file", _FORM)
    if options.get("unix") == "yes":
        raise UsageError(f"{where}: a login on a Unix socket", "leave unix=yes out")


def of_options(options: dict[str, str], both: tuple[str, ...] = ()) -> Login | None:
    """How clients log in; None: they do not. `both`: the protocols of a server with both ways."""
    if "auth" not in options:
        return None
    user, _, file = options["auth"].partition(":")
    sasl = "sasl" in options
    wires = _BY_SASL if sasl else both or _BY_TEXT
    return Login(user=user, file=file, wires=wires, sasl=sasl)


def written_accounts(login: Login, folder: Path) -> Path:
    """Write the account for memcached's -Y, readable by this user only; the file's path."""
    path = folder / "accounts"
    path.touch(mode=0o600)
    path.write_text(f"{login.user}:{login.password()}\n", encoding="utf-8")
    return path


def sasl_environment(login: Login, folder: Path) -> dict[str, str]:
    """The environment of a memcached whose SASL has the account.

    Raises UnsupportedError if this machine cannot write accounts, TrialError.
    """
    if not shutil.which(_SASLPASSWD):
        raise UnsupportedError(f"{_SASLPASSWD} is not on this machine", "apt-get install sasl2-bin")
    name, at, realm = login.user.partition("@")
    database = folder / "sasldb"
    realm = realm if at else socket.gethostname()
    command = [_SASLPASSWD, "-p", "-c", "-f", str(database), "-u", realm, name]
    password = login.password().encode()
    try:
        subprocess.run(command, input=password, check=True, timeout=_PASSWD_S, capture_output=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise TrialError(f"{_SASLPASSWD} could not write an account") from error
    database.chmod(0o600)
    (folder / "memcached.conf").write_text(
        "mech_list: plain\npwcheck_method: auxprop\nauxprop_plugin: sasldb\n"
        f"sasldb_path: {database}\n"
    )
    return {"SASL_CONF_PATH": str(folder)}
