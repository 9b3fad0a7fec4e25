"""The command line: one file for each verb.

It imports verbs, and modules that only they need, late: `--help` stays quick.
"""

import errno
import signal
import sys
from types import FrameType

from cachemark.cli import standard_streams
from cachemark.cli.exit_status import FAILED, INTERRUPTED, OK, USAGE
from cachemark.cli.front_page import front_page

# Longer than any message of this program, even with the longest path.
_MAX_ERROR_LINE = 6000
_STDOUT_ERRORS = (errno.ENOSPC, errno.EPIPE, errno.EBADF, errno.EIO, errno.EFBIG, errno.EDQUOT)


def main(arguments: list[str] | None = None) -> None:
    """Run a verb and exit with a status of exit_status.py."""
    # The parent may have blocked them: then only SIGKILL would end a run.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Under nohup SIGHUP is ignored: keep it so. But programs that this one starts inherit no
        # handler: a server, or a run of `cachemark web`, must end when it is asked to.
        ignored = signal.getsignal(number) is signal.SIG_IGN
        signal.signal(number, _do_nothing if ignored else _interrupt)
    standard_streams.prepare()
    status = _status(sys.argv[1:] if arguments is None else arguments)
    standard_streams.discard()
    sys.exit(status)


def _status(arguments: list[str]) -> int:
    try:
        status = _played(arguments)
        standard_streams.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except _in_words() as error:
        return _fail(*_explained(error))
    return status if isinstance(status, int) else OK


def _played(arguments: list[str]) -> object:
    if arguments in ([], ["-h"], ["--help"]):
        sys.stdout.write(front_page())
        return OK
    from cachemark.cli.program import app  # noqa: PLC0415

    return app(arguments, exit_on_error=False, print_error=False, result_action="return_value")


def _in_words() -> tuple[type[Exception], ...]:
    """The errors that users can cause, as opposed to bugs."""
    from cyclopts import CycloptsError  # noqa: PLC0415

    from cachemark.model.errors import TrialError, UsageError  # noqa: PLC0415

    own = (CycloptsError, UsageError, TrialError)
    return (*own, OSError, UnicodeEncodeError, MemoryError)


def _explained(error: Exception) -> tuple[str, int]:
    from cyclopts import CycloptsError  # noqa: PLC0415

    from cachemark.model.errors import TrialError, with_remedy  # noqa: PLC0415

    match error:
        case CycloptsError():
            verb = " ".join(["cachemark", *(error.command_chain or ())])
            return f"{error}\n  see `{verb} --help`", USAGE
        case UnicodeEncodeError():  # a word of the command line, or a name on disk
            return f"{error.object}: not text in UTF-8", USAGE
        case TrialError():
            return with_remedy(error.text, error.remedy), FAILED
        case OSError():
            return _system_error_text(error), FAILED
        case MemoryError():
            return "there is not enough memory", FAILED
        case _:
            return str(error), USAGE


def _fail(text: str, status: int) -> int:
    from cachemark.report.console import plain_console, print_words  # noqa: PLC0415

    lines = "\n".join(map(_shortened, f"cachemark: {text}".split("\n")))
    print_words(plain_console(stderr=True), lines)
    return status


def _shortened(line: str) -> str:
    """A line of an error, cut at a limit: names in it may have any length."""
    return line if len(line) <= _MAX_ERROR_LINE else f"{line[:_MAX_ERROR_LINE]}…"


def _system_error_text(error: OSError) -> str:
    """The text of a failed read or write; without a file, of stdout, which nearly always failed."""
    if error.filename is None and error.errno in _STDOUT_ERRORS:
        return f"stdout cannot be written: {error.strerror}"
    return str(error) if error.filename is None else f"{error.filename}: {error.strerror}"


def _do_nothing(_signal: int, _frame: FrameType | None) -> None:
    pass


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    # A run's context managers stop servers and workers on the way out.
    raise KeyboardInterrupt
