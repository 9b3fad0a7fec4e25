"""The worker for memcached clients in Python: `python worker.py CLIENT`.

worker.py     requests in, answers out        lane_threads.py  the measured loop: calls that block
prepare.py    the request `prepare`         lane_tasks.py    the measured loop: awaited calls
client.py     the base of a client file    window.py        when a run begins and ends
player.py     one prepared trial, its phases  verify.py        the result of a reply
tape.py       the tape, checked               recorder.py      the records, and their sums
operation.py  its records, made ready         timeline.py      the window in slices and sections
slices.py     slices in turn with others      histogram.py     HdrHistogram
groups.py     the times of whole groups       call_log.py      a record of each call
give_up.py    callers that give up calls      clients/         one file for each library
main_thread.py  the thread of the first lane  heap.py          what a run collects
sampler.py    samples of its functions
README.md     what a client file must contain
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import platform
import queue
import sys
import threading
import time
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path

import give_up
from client import describe, load_client, log
from main_thread import MAIN_THREAD
from prepare import Prepare, Unsupported, check
from tape import KINDS, Tape, TapeError
from window import clock

if os.environ.get("CACHEMARK_PROFILE"):  # the sampler imports much, and few workers need it
    from sampler import sampled
else:
    sampled = contextlib.nullcontext

_HERE = Path(__file__).resolve().parent
_PROGRESS_S = 1.0
# A call that outlasts every time-out by this much will never return.
_LOST_NS = 5_000_000_000


class Worker:
    """Answers requests one after the other, while a run plays in a thread of its own."""

    def __init__(self, name, out):
        self.name, self._out = name, out
        self._inbox = queue.SimpleQueue()
        self._make_player = self._client = self._player = self._window = self._slices = None

    def serve(self):
        """Answer until `bye` or the end of stdin."""
        threading.Thread(target=self._listen, daemon=True).start()
        answers = {
            "hello": self.hello, "prepare": self.prepare, "run": self.run,
            "begin_slices": self.begin_slices, "slice": self.slice, "end_slices": self.end_slices,
        }  # fmt: skip
        while True:
            request = self._inbox.get()
            if request["type"] == "bye":
                return
            if request["type"] in answers:
                self._send(answer(answers[request["type"]], request))

    def _listen(self):
        for line in sys.stdin:
            try:
                request = json.loads(line)
                kind = request["type"]
            except (ValueError, KeyError, TypeError):
                self._send(failed("protocol", f"not a request: {line.strip()[:120]!r}"))
                continue
            if kind in ("stop", "bye") and self._window:
                self._window.stop()
            self._inbox.put(request)
        if self._window:
            os._exit(0)  # the orchestrator is gone, and a call of the library may never return
        self._inbox.put({"type": "bye"})

    def _send(self, message):
        self._out.write(json.dumps(message).encode() + b"\n")
        self._out.flush()

    def hello(self, _request):
        """The answer to `hello`, also if the library is missing."""
        client, version = load_client(self.name)
        self._client = client
        # Only now: the histograms' library is not there either before the set-up.
        self._make_player = importlib.import_module("player").Player
        self._make_slices = importlib.import_module("slices").Slices
        implementation = platform.python_implementation()
        prefix = "pypy" if implementation == "PyPy" else "python"
        kinds = [kind for kind in KINDS if kind in client.CALLS]
        return {
            "type": "ready", "protocol": 2, "client": f"{prefix}/{self.name.replace('_', '-')}",
            "library": client.LIBRARY, "library_version": version, "language": "python",
            "runtime": f"{implementation} {platform.python_version()}",
            "capabilities": [*client.WIRES, *client.FEATURES, "timeline", "slices", "groups",
                             "calls", *give_up.ways(client), *kinds],
        }  # fmt: skip

    def prepare(self, request):
        """Read the tape, refuse what the client cannot do, and connect."""
        if self._client is None:
            self.hello(request)
        if self._player:
            self._player.close()
        self._player = self._slices = None
        # Only this makes PyPy close unreachable objects: tapes, sockets of libraries.
        gc.collect()
        try:
            tape = Tape(request["tape"])
        except OSError as error:
            return failed("tape", str(error))
        setup = Prepare(request, tape, self._client.FEATURES)
        check(setup, self._client, tape)
        try:
            self._player = self._make_player(self._client, setup, tape)
        except UnicodeDecodeError as error:
            raise Unsupported(f"{self.name}: keys that are no text: {error}") from error
        except self._client.UNREACHABLE as error:
            addresses = ", ".join(server.text for server in setup.servers)
            return failed("connect", f"{addresses}: {error or type(error).__name__}")
        return {"type": "ready"}

    def run(self, request):
        """Play a phase, and report progress each second."""
        if self._player is None:
            return failed("protocol", "run before prepare")
        with sampled(request):
            return self._run(request)

    def _run(self, request):
        player, results = self._player, queue.SimpleQueue()
        calls_path = request.get("calls", "")
        self._slices = None
        player.clear_away()
        window = player.window(request.get("start_unix_ns", 0), request.get("duration_ms"))

        def play(request):
            wish = request.get("gives_up")
            phase, ops, counts_heap = request["phase"], request.get("ops"), request.get("heap")
            return player.run(phase, ops, window, calls_path, wish, counts_heap=counts_heap)

        self._window = window
        run = threading.Thread(target=lambda: results.put(answer(play, request)), daemon=True)
        run.start()
        try:
            ended = self._wait_for_run(results, player, window)
            if calls_path:
                player.write_calls(request["phase"], calls_path)
            if ended["type"] == "error":
                self._player = None  # its lanes cannot play again
            return ended
        finally:
            self._window = None

    def begin_slices(self, _request):
        """Get ready for slices from the tape's start."""
        if self._player is None:
            return failed("protocol", "begin_slices before prepare")
        self._slices = self._make_slices(self._player)
        self._player.clear_away()
        return {"type": "ready"}

    def slice(self, request):
        """Play a slice: the lanes' threads play, and this one waits for them."""
        if self._slices is None:
            return failed("protocol", "slice before begin_slices")
        self._window = window = self._slices.window(request)
        limit_ns = 2 * window.timeout_ns + _LOST_NS

        def call_threads(function, arguments):
            left_ns = window.planned_end_ns - clock() + limit_ns
            until_s = time.monotonic() + left_ns / 1e9
            begun = self._player.begin(function, arguments)
            return [each.result(max(0.0, until_s - time.monotonic())) for each in begun]

        try:
            return self._slices.play(window, call_threads)
        except FutureTimeoutError:
            self._player = self._slices = None
            return failed("client", "a call of the library does not return", definite=False)
        except BaseException:
            self._player = self._slices = None  # its lanes cannot play again
            raise
        finally:
            self._window = None

    def end_slices(self, _request):
        """The sum of all slices."""
        if self._slices is None:
            return failed("protocol", "end_slices before begin_slices")
        done, self._slices = self._slices.done(), None
        return done

    def _wait_for_run(self, results, player, window):
        last_progress_ns, before = window.start_ns, None
        while True:
            try:
                return results.get(timeout=_PROGRESS_S)
            except queue.Empty:
                ops, errors = now = player.progress()
                self._send({"type": "progress", "ops": ops, "errors": errors})
            # A closed loop always has an outstanding call; an open loop may have none in its
            # window.
            waits = player.waits and clock() < window.planned_end_ns
            if now != before or waits or not player.playing:
                last_progress_ns, before = max(clock(), window.start_ns), now
            if clock() - last_progress_ns > 2 * player.setup.timeout_ns + _LOST_NS:
                return failed("client", "a call of the library does not return", definite=False)


def answer(do, request):
    """The answer to a request, also if it raises an exception."""
    try:
        return do(request)
    except Unsupported as refusal:
        reason, remedy = (*refusal.args, "")[:2]
        return {"type": "unsupported", "reason": reason, "remedy": remedy}
    except TapeError as error:
        return failed("tape", str(error))
    except Exception as error:
        log(error)
        return failed("internal", describe(error))


def failed(kind, text, definite=True):
    """The answer to a request that failed."""
    return {"type": "error", "kind": kind, "text": text, "definite": definite}


def main():
    """Take the client's name; keep stdout for the protocol, even if a library prints."""
    known = sorted(path.stem for path in (_HERE / "clients").glob("[a-z]*.py"))
    name = sys.argv[1].replace("-", "_") if len(sys.argv) == 2 else ""
    if name not in known:
        listed = ", ".join(each.replace("_", "-") for each in known)
        print(f"worker.py CLIENT: one of {listed}", file=sys.stderr)
        return 2
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    threading.Thread(target=serve, args=(Worker(name, out),), daemon=True).start()
    return MAIN_THREAD.serve()


def serve(worker):
    """Answer requests in a thread of its own; then end the process, even if lanes still play."""
    status = 1
    try:
        worker.serve()
        status = 0
    except BaseException as error:
        log(error)
    finally:
        os._exit(status)  # without waiting for a call of the library, which may never return


if __name__ == "__main__":
    sys.exit(main())
