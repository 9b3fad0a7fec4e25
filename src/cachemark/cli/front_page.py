"""The text of `cachemark --help`: the verbs in groups. It imports nothing that takes long."""

import shutil
import textwrap

SUMMARY = "Measures memcached clients and servers of all languages with the same work."
EPILOGUE = (
    "Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted. "
    "`cachemark VERB --help` says what 1 and 3 mean for a verb. `cachemark-engine --help` has "
    "tools that need no Python, such as `stampede`: many callers of one key that expires."
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
        "trace": "Describe the traffic of a trace, or convert it to another format",
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
_OPTIONS = {"--help, -h": "Print this page, or that of a verb", "--version": "Print the version"}
_WIDEST_COLUMNS = 100


def front_page() -> str:
    """The page, as wide as the terminal."""
    columns = min(shutil.get_terminal_size().columns, _WIDEST_COLUMNS)
    names = 2 + max(len(name) for rows in (*VERBS.values(), _OPTIONS) for name in rows)
    lines = ["Usage: cachemark VERB [OPTIONS]", "", *_folded(SUMMARY, columns), ""]
    for title, rows in {**VERBS, "Options": _OPTIONS}.items():
        lines.append(title)
        for name, words in rows.items():
            lines += _folded(words, columns, f"  {name:{names}}")
        lines.append("")
    return "\n".join([*lines, *_folded(EPILOGUE, columns), ""])


def _folded(words: str, columns: int, first: str = "") -> list[str]:
    rest = " " * len(first)
    return textwrap.wrap(words, columns, initial_indent=first, subsequent_indent=rest)
