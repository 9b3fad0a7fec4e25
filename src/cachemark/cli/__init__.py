"""The command line: one file for each verb.

Verbs, and all that is only needed with them, are imported late, so that `--help` is quick.
"""

import errno
import keyword
import signal
import sys
from types import FrameType

import cyclopts

from cachemark.cli import standard_streams
from cachemark.cli.exit_status import FAILED, INTERRUPTED, OK, USAGE, verb_epilogue

# Longer than any error of this program, with the longest path in it.
_MAX_ERROR_LINE = 6000
_STDOUT_ERRORS = (errno.ENOSPC, errno.EPIPE, errno.EBADF, errno.EIO, errno.EFBIG, errno.EDQUOT)


def _version() -> str:
    from cachemark.host.program_version import version_text  # noqa: PLC0415

    return version_text()


app = cyclopts.App(
    name="cachemark",
    help="Measures memcached clients and servers of all languages with the same work.",
    version=_version,
    version_flags=["--version"],
    help_format="plaintext",
    # Options have no --no-OPTION or --empty-OPTION, unless they name one.
    default_parameter=cyclopts.Parameter(negative=""),
    help_epilogue="Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted. "
    "`cachemark VERB --help` says what 1 and 3 mean for a verb. `cachemark-engine --help` has "
    "tools that need no Python, such as `stampede`: many callers of one key that expires.",
)
VERBS = {
    "Measure": {
        "run": "Run a suite or an experiment file, and print its table",
        "drive": "Load one server with the native client, and keep the results as a run",
        "new": "Write an experiment file with comments, from options or from answers",
        "record": "Record the traffic of a memcached, or of captured packets, as a trace",
        "memory": "Fill servers and report how much memory an item takes",
        "resilience": "Find out what clients do when their server freezes, dies or answers wrongly",
        "jmh": "Run Java clients under JMH",
    },
    "Compare": {
        "compare": "Compare two runs, or two clients, servers or loads of one run",
        "why": "Count what clients do for one operation, and say what differs",
        "history": "List the runs, or show cells over time, machines and versions",
    },
    "Look": {
        "report": "Print the report of a stored run",
        "explain": "Explain how a figure was computed, or what a verdict or a rule means",
        "web": "Serve pages of all runs: search, reports, comparisons",
        "suites": "List the suites",
        "clients": "List the clients, and what each needs to run on this machine",
        "servers": "List the kinds of servers",
        "trace": "Show what the traffic of a trace is, or convert it to another format",
        "predict": "Predict from a trace how many reads miss with more or less memory",
        "capacity": "Count the servers that a trace, or a running memcached, needs",
        "export": "Write a run to one file",
        "import": "Import a run that was exported elsewhere",
    },
    "Check": {
        "doctor": "Check whether this machine is suitable for measurements",
        "probe": "Check whether servers behave like memcached",
        "conform": "Run the conformance cases on a client's worker",
        "fidelity": "Compare what clients report with a scripted server's log and known answers",
        "calibrate": "Measure the clients' own cost, and the highest rate at which they are on "
        "time",
    },
    "Set up": {
        "setup": "Build the workers of every language",
        "agent": "Let this host take part in runs over several hosts",
        "hosts": "Make certificates for the hosts of a file, or check all of them",
        "protocol": "Print the worker protocol, for authors of workers",
        "completion": "Print a script that completes verbs and options in a shell",
        "man": "Write manual pages into a folder",
    },
}


def _register() -> None:
    for place, (title, verbs) in enumerate(VERBS.items()):
        group = cyclopts.Group(title, sort_key=place)
        for order, (verb, summary) in enumerate(verbs.items()):
            # No module can be called `import`.
            name = f"{verb}_" if keyword.iskeyword(verb) else verb
            app.command(
                f"cachemark.cli.{name}:{name}",
                name=verb,
                help=summary,
                help_epilogue=verb_epilogue(verb),
                group=group,
                sort_key=order,
            )
    options = cyclopts.Group("Options", sort_key=len(VERBS))
    for flag in ("--help", "--version"):
        app[flag].group = (options,)


_register()


def main(arguments: list[str] | None = None) -> None:
    """Run a verb and exit with a status of exit_status.py."""
    # A parent may have left them blocked: then nothing but SIGKILL would end a run.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
    for number in (signal.SIGTERM, signal.SIGHUP):
        # nohup has the terminal's end ignored: it stays so here. But programs that this one starts
        # inherit no handler: a server, or a run of `cachemark web`, must end when it is asked to.
        ignored = signal.getsignal(number) is signal.SIG_IGN
        signal.signal(number, _do_nothing if ignored else _interrupt)
    standard_streams.prepare()
    status = _status(sys.argv[1:] if arguments is None else arguments)
    standard_streams.discard()
    sys.exit(status)


def _status(arguments: list[str]) -> int:
    try:
        status = app(
            arguments, exit_on_error=False, print_error=False, result_action="return_value"
        )
        standard_streams.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except _in_words() as error:
        return _fail(*_explained(error))
    return status if isinstance(status, int) else OK


def _in_words() -> tuple[type[Exception], ...]:
    """The errors that are no bugs."""
    from cachemark.model.errors import TrialError, UsageError  # noqa: PLC0415

    own = (cyclopts.CycloptsError, UsageError, TrialError)
    return (*own, OSError, UnicodeEncodeError, MemoryError)


def _explained(error: Exception) -> tuple[str, int]:
    """An error in words, and the exit status."""
    from cachemark.model.errors import TrialError, with_remedy  # noqa: PLC0415

    match error:
        case cyclopts.CycloptsError():
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
    """A line of an error. What strangers wrote, such as a name, may have any length."""
    return line if len(line) <= _MAX_ERROR_LINE else f"{line[:_MAX_ERROR_LINE]}…"


def _system_error_text(error: OSError) -> str:
    """The text of a failed read or write. Without a file's name it is nearly always stdout's."""
    if error.filename is None and error.errno in _STDOUT_ERRORS:
        return f"stdout cannot be written: {error.strerror}"
    return str(error) if error.filename is None else f"{error.filename}: {error.strerror}"


def _do_nothing(_signal: int, _frame: FrameType | None) -> None:
    pass


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    # A run's context managers stop servers and workers on the way out.
    raise KeyboardInterrupt
