"""The request `prepare`, and a client's refusals before the prefill."""

from __future__ import annotations

import ssl
import threading
from collections import namedtuple
from pathlib import Path

# `text` is the address in the request; `path` is for a Unix socket, else `host` and `port`.
Server = namedtuple("Server", "text host port path")
ON_OFF = ("on", "off")


class Unsupported(Exception):  # noqa: N818
    """A task that this client cannot do; the arguments are the reason and the remedy."""


class AnyText(tuple):
    """The values of an option that is any text."""

    def __contains__(self, value):
        return True


class AnyFile(tuple):
    """The values of an option that is the path of a file."""

    def __contains__(self, value):
        return Path(value).is_file()

    def __iter__(self):
        return iter(("a PEM file",))


class Count(tuple):
    """The values of an option that is a number of operations."""

    def __contains__(self, value):
        return value.isascii() and value.isdigit() and 1 <= int(value[:20]) < 1 << 63

    def __iter__(self):
        return iter(("a number from 1 on",))


class TlsContext(ssl.SSLContext):
    """Expects the option's name, if any, in certificates, and not the server's address."""

    expected = None

    def wrap_socket(self, sock, server_side=False, *rest, server_hostname=None, **options):
        name = self.expected or server_hostname
        return super().wrap_socket(sock, server_side, *rest, server_hostname=name, **options)

    def wrap_bio(self, incoming, outgoing, server_side=False, server_hostname=None, session=None):
        name = self.expected or server_hostname
        return super().wrap_bio(incoming, outgoing, server_side, name, session)


class Prepare:
    """The request `prepare`, as client files read it."""

    def __init__(self, request, tape, features):
        self.servers = [parse(text) for text in request["servers"]]
        self.wire = request.get("wire", "text")
        self.threads = request.get("threads", 1)
        self.connections = request.get("connections", 1)
        self.depth = request.get("depth", 1)
        self.segment = request.get("segment", (0, 1))
        self.timeout_s = request.get("timeout_ms", 1000) / 1e3
        self.timeout_ns = request.get("timeout_ms", 1000) * 1_000_000
        self.options = request.get("options", {})
        self.common = self.options.get("profile", "common") == "common"
        self.tuned = self.options.get("profile") == "tuned"
        self.reconnect_after = 0  # set after the check of the options
        self.kinds, self.expires = tape.kinds, tape.expires
        self._lock, self._shared = threading.Lock(), None
        # An operation without a reply, or outstanding with others, could be overtaken on its way.
        in_turn = self.depth == 1 and "set_noreply" not in tape.kinds
        in_order = in_turn or "in_order" in features
        own = self.servers and self.connections <= self.threads
        lanes = self.segment[1] * self.threads
        if not own or not in_order or not self.common or tape.generation_lanes != lanes:
            tape.accept_any()

    @property
    def server(self):
        """The only server, or the first."""
        return self.servers[0]

    def on(self, option, default):
        """Whether an option of the client is on."""
        return self.options.get(option, "on" if default else "off") == "on"

    def tls_context(self):
        """Trust in the certificates of the option `tls` alone; None without it."""
        if "tls" not in self.options:
            return None
        context = TlsContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.options["tls"])
        context.expected = self.options.get("tls_name")
        if "tls_client_cert" in self.options:
            own = self.options["tls_client_cert"], self.options["tls_client_key"]
            context.load_cert_chain(*own)
        return context

    def login(self):
        """User and password of the option `auth`, `USER:FILE`; None and None without it."""
        if "auth" not in self.options:
            return None, None
        user, _, file = self.options["auth"].partition(":")
        return user, Path(file).read_text(encoding="utf-8").splitlines()[0]

    def shared(self, make):
        """The result of `make`, which is called once for the sessions of all threads."""
        with self._lock:
            if self._shared is None:
                self._shared = make()
            return self._shared


def parse(text):
    """A server's address: `unix:/path`, `host:port` or `[host]:port`."""
    if text.startswith("unix:"):
        return Server(text, None, None, text[5:])
    host, _, port = text.rpartition(":")
    return Server(text, host.strip("[]"), int(port), None)


def check(setup, client, tape):
    """Refuse what the client cannot do. Raises Unsupported."""
    for refused, reason in _refusals(setup, client, tape):
        if refused:
            raise Unsupported(f"{client.LIBRARY}: {reason}")
    setup.reconnect_after = int(setup.options.get("reconnect_after", 0))


def _refusals(setup, client, tape):
    missing = ", ".join(sorted(tape.kinds - set(client.CALLS)))
    yield missing, f"no {missing}"
    yield tape.repeats, "a batch that names a key twice: the library takes and gives dicts"
    yield tape.open_loop and "open_loop" not in client.FEATURES, "no open loop"
    yield tape.thinks, "no time to think between operations"
    yield from _options(setup, client)
    if client.WIRES == ("none",):
        yield setup.servers, "a cache in the process has no servers"
    else:
        yield not setup.servers, "no server is named"
        yield setup.wire not in client.WIRES, f"no wire {setup.wire!r}, only {client.WIRES}"
        yield len(setup.servers) > 1 and "cluster" not in client.FEATURES, "one server only"
        by_path = any(server.path for server in setup.servers)
        yield by_path and "unix" not in client.FEATURES, "no Unix sockets"
        if client.API == "sync":
            yield setup.connections != setup.threads, "one connection for each thread"
    if client.API == "sync":
        yield setup.depth > 1, "one operation at a time on a connection (depth 1)"
    else:
        yield setup.threads > 1, "one event loop in one thread; raise connections instead"
    if hasattr(client, "refuse"):
        yield client.refuse(setup), client.refuse(setup)


def _options(setup, client):
    known = dict(client.OPTIONS)
    if client.WIRES != ("none",):
        tuned = ("tuned",) if hasattr(client, "TUNED") else ()
        known["profile"] = ("common", "defaults", *tuned)
        if client.API == "sync":
            known["reconnect_after"] = Count()
    if "tls" in client.FEATURES:
        files = ("tls", "tls_client_cert", "tls_client_key")
        known.update(dict.fromkeys(files, AnyFile()), tls_name=AnyText())
    if {"login_sasl", "login_text"} & set(client.FEATURES):
        known["auth"] = AnyText()
    for name, value in setup.options.items():
        listed = ", ".join(sorted(known)) or "none"
        yield name not in known, f"no option {name!r}; its options: {listed}"
        values = known.get(name, ())
        yield value not in values, f"option {name} is {' or '.join(values)}, not {value!r}"
