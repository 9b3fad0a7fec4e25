"""Runs verbs of the engine until they end: their output, and the tapes that they write."""

import signal
import subprocess
from pathlib import Path

from cachemark.host.process import binary_path
from cachemark.model.errors import UsageError, engine_error_text


def engine_output(arguments: list[str], remedy: str, *, stops: bool = False) -> str:
    """Run a verb of the engine until it ends. Raises UsageError with the engine's own words.

    With `stops`, Ctrl-C or SIGTERM ends the verb early, and its output is still complete.
    """
    # In its own group, the engine gets only the signal below, and not the terminal's Ctrl-C too.
    with subprocess.Popen(
        [binary_path(), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0,
    ) as engine:  # fmt: skip
        try:
            stdout, stderr = engine.communicate()
        except KeyboardInterrupt:
            engine.send_signal(signal.SIGTERM)
            stdout, stderr = engine.communicate()
            if not stops:
                raise
        finally:
            if engine.poll() is None:
                engine.kill()
    if engine.returncode:
        error = engine_error_text(stderr) or f"the engine ended: {engine.returncode}"
        raise UsageError(error, remedy)
    return stdout


def write_tape(path: Path, *words: str) -> None:
    """Write a tape, with options of the engine. Raises UsageError if the engine refuses them."""
    engine_output(["tape", "write", *words, "--out", str(path)], "")
