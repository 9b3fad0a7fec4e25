"""The worker for memcached clients in Python: `python worker.py CLIENT`.

    worker.py   requests in, answers out            window.py   when a run begins and ends
    player.py   one prepared trial and its phases   threads.py  the measured loop of blocking calls
    tape.py     what is to be done                  tasks.py    the measured loop of awaited calls
    judge.py    what an answer comes to             record.py   what is noted, and its sums
    clients/    one file for each library

A client file says which `LIBRARY` it drives, whether its `API` is `sync` or `async`, its `WIRES`,
`FEATURES` and `OPTIONS`, the type of `KEYS` that it takes, and has a class `Session`: a method for
each kind of operation that the library can do gives the function to call, its arguments, and the
judge of what it returns; `failure` says what an exception counts as; `barrier` makes an answered
command on each connection and says how many; `close` ends it.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import queue
import sys
import threading
from importlib import metadata
from pathlib import Path

from tape import KINDS, Tape, TapeError
from window import clock

_HERE = Path(__file__).resolve().parent
_PROGRESS_S = 1.0
# A call that outlasts every time-out by this much will not come back.
_LOST_NS = 5_000_000_000


class Unsupported(Exception):  # noqa: N818
    """What this client cannot do; the arguments are the reason and the remedy."""


class Setup:
    """What `prepare` asks for, as client files read it."""

    def __init__(self, request):
        self.servers = request["servers"]
        self.wire = request.get("wire", "text")
        self.threads = request.get("threads", 1)
        self.connections = request.get("connections", 1)
        self.depth = request.get("depth", 1)
        self.segment = request.get("segment", (0, 1))
        self.timeout_s = request.get("timeout_ms", 1000) / 1e3
        self.timeout_ns = request.get("timeout_ms", 1000) * 1_000_000
        self.options = request.get("options", {})
        self.path = self.host = None
        if self.servers[0].startswith("unix:"):
            self.path, self.port = self.servers[0][5:], 0
        else:
            host, _, port = self.servers[0].rpartition(":")
            self.host, self.port = host.strip("[]"), int(port)

    def on(self, option, default):
        """Whether an option of the client is on."""
        return self.options.get(option, default) == "on"


def check(setup, client, tape):
    """Refuse what the client cannot do, before anything is timed. Raises Unsupported."""
    name = client.LIBRARY
    missing = sorted(kind for kind in tape.kinds if not hasattr(client.Session, kind))
    refusals = [
        (missing, f"no {', '.join(missing)}"),
        (setup.wire not in client.WIRES, f"no wire {setup.wire!r}, only {client.WIRES}"),
        (len(setup.servers) > 1, "one server: this worker does not spread keys"),
        (setup.path and "unix" not in client.FEATURES, "no Unix sockets"),
        (set(setup.options) - set(client.OPTIONS), f"options are {client.OPTIONS or 'none'}"),
        (set(setup.options.values()) - {"on", "off"}, "options are `on` or `off`"),
        (tape.repeats, "a batch that names a key twice: the library takes and gives dicts"),
    ]
    if client.API == "sync":
        refusals += [
            (setup.depth > 1, "one operation at a time on a connection (depth 1)"),
            (setup.connections != setup.threads, "one connection for each thread"),
        ]
    elif setup.threads > 1:
        refusals.append((True, "one event loop in one thread; raise connections instead"))
    if hasattr(client, "refuse"):
        refusals.append((client.refuse(tape.kinds), client.refuse(tape.kinds)))
    for refused, reason in refusals:
        if refused:
            raise Unsupported(f"{name}: {reason}")


class Worker:
    """Answers requests one after the other; a run goes on in a thread of its own meanwhile."""

    def __init__(self, name, out):
        self.name, self._out = name, out
        self._inbox = queue.SimpleQueue()
        self._make_player = self._client = self._player = self._window = None

    def serve(self):
        """Answer until `bye` or the end of stdin."""
        threading.Thread(target=self._listen, daemon=True).start()
        answers = {"hello": self.hello, "prepare": self.prepare, "run": self.run}
        while True:
            request = self._inbox.get()
            if request["type"] == "bye":
                return
            if request["type"] in answers:
                self._tell(self._answer(answers[request["type"]], request))

    def _listen(self):
        for line in sys.stdin:
            try:
                request = json.loads(line)
                kind = request["type"]
            except (ValueError, KeyError, TypeError):
                self._tell(failed("protocol", f"not a request: {line.strip()[:120]!r}"))
                continue
            if kind in ("stop", "bye") and self._window:
                self._window.stop()
            self._inbox.put(request)
        if self._window:
            os._exit(0)  # nobody is left to tell, and a call of the library may not come back
        self._inbox.put({"type": "bye"})

    def _tell(self, message):
        self._out.write(json.dumps(message).encode() + b"\n")
        self._out.flush()

    @staticmethod
    def _answer(do, request):
        try:
            return do(request)
        except Unsupported as refusal:
            reason, remedy = (*refusal.args, "")[:2]
            return {"type": "unsupported", "reason": reason, "remedy": remedy}
        except TapeError as error:
            return failed("tape", str(error))
        except Exception as error:
            return failed("internal", repr(error))

    def hello(self, _request):
        """Who this is. A library that is not there is an answer too."""
        try:
            self._make_player = importlib.import_module("player").Player
            self._client = importlib.import_module(f"clients.{self.name}")
            version = metadata.version(self._client.LIBRARY)
        except (ImportError, metadata.PackageNotFoundError) as error:
            raise Unsupported(f"{self.name} is not installed: {error}", "make workers") from error
        client = self._client
        kinds = [kind for kind in KINDS if hasattr(client.Session, kind)]
        runtime = f"{platform.python_implementation()} {platform.python_version()}"
        prefix = "pypy" if platform.python_implementation() == "PyPy" else "python"
        return {
            "type": "ready", "protocol": 1, "client": f"{prefix}/{self.name.replace('_', '-')}",
            "library": client.LIBRARY, "library_version": version, "language": "python",
            "runtime": runtime, "capabilities": [*client.WIRES, *client.FEATURES, *kinds],
        }  # fmt: skip

    def prepare(self, request):
        """Read the tape, refuse what cannot be done, connect."""
        if self._client is None:
            self.hello(request)
        try:
            tape = Tape(request["tape"])
        except OSError as error:
            return failed("tape", str(error))
        setup = Setup(request)
        check(setup, self._client, tape)
        if self._player:
            self._player.close()
        self._player = None
        try:
            self._player = self._make_player(self._client, setup, tape)
        except UnicodeDecodeError as error:
            raise Unsupported(f"{self.name}: keys that are no text: {error}") from error
        except self._client.UNREACHABLE as error:
            return failed("connect", f"{setup.servers[0]}: {error or type(error).__name__}")
        return {"type": "ready"}

    def run(self, request):
        """Play a phase, and tell progress each second."""
        if self._player is None:
            return failed("protocol", "run before prepare")
        player, results = self._player, queue.SimpleQueue()
        window = player.window(request.get("start_unix_ns", 0), request.get("duration_ms"))

        def play():
            run = player.run
            results.put(
                self._answer(lambda _: run(request["phase"], request.get("ops"), window), 0)
            )

        self._window = window
        threading.Thread(target=play, daemon=True).start()
        try:
            return self._attend(results, player, window)
        finally:
            self._window = None

    def _attend(self, results, player, window):
        heard, before = window.start_ns, None
        while True:
            try:
                return results.get(timeout=_PROGRESS_S)
            except queue.Empty:
                ops, errors = now = player.progress()
                self._tell({"type": "progress", "ops": ops, "errors": errors})
            # An open loop may have nothing to do for long; a closed one has always.
            if now != before or player.waits or not player.playing:
                heard, before = max(clock(), window.start_ns), now
            if clock() - heard > 2 * player.setup.timeout_ns + _LOST_NS:
                self._player = None
                return failed("client", "a call of the library does not return", definite=False)


def failed(kind, text, definite=True):
    """The answer to a request that came to nothing."""
    return {"type": "error", "kind": kind, "text": text, "definite": definite}


def main():
    """Take the client's name; keep stdout for the protocol, whatever the libraries print."""
    known = sorted(path.stem for path in (_HERE / "clients").glob("[a-z]*.py"))
    name = sys.argv[1].replace("-", "_") if len(sys.argv) == 2 else ""
    if name not in known:
        listed = ", ".join(each.replace("_", "-") for each in known)
        print(f"worker.py CLIENT: one of {listed}", file=sys.stderr)
        return 2
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    Worker(name, out).serve()
    os._exit(0)  # without waiting for a call of the library that may not come back


if __name__ == "__main__":
    sys.exit(main())
