"""The exit statuses of all verbs: the program, the verbs' `--help` and the table of docs/ci.md."""

OK, FAILED, USAGE, INCONCLUSIVE, INTERRUPTED = 0, 1, 2, 3, 130

EXIT_STATUSES: dict[int, str] = {
    OK: "done; with a gate: nothing is worse",
    FAILED: "failed",
    USAGE: "bad input: an option, a name or a file; nothing was played",
    INCONCLUSIVE: "compare --fail-on-inconclusive: nothing is worse, but something is not settled",
    INTERRUPTED: "interrupted (Ctrl-C, SIGTERM, SIGHUP); played trials are kept",
}
# The meaning of status 1. Other verbs fail only if the system does, such as by a full disk.
FAILURES: dict[str, str] = {
    "run": "a trial failed, nothing was measured, or all measured trials of a cell are INVALID; "
    "with --search: no rate was shown to meet the objective",
    "drive": "as for `run`",
    "compare": "--play, --fail-on-regression: a gated figure is worse, or is missing",
    "probe": "`run quick` (or the suite of --suite) would refuse a part of its work on a server",
    "memory": "a server could not be filled",
    "calibrate": "a client could not be measured",
    "doctor": "a check fails",
    "setup": "a build failed, or a language that you named is missing",
    "hosts": "check: hosts differ in their software, or the doctor finds one unfit",
    "jmh": "a benchmark has no figure",
    "conform": "a case failed",
    "why": "a client could not be counted",
    "resilience": "a client is unsafe, or a cell could not be judged",
    "fidelity": "a case failed (`not measured` is no failure)",
}


def verb_epilogue(verb: str) -> str:
    """The exit statuses of one verb in a sentence, for the end of its `--help`."""
    if verb not in FAILURES:
        return f"Exit status: {OK} done, {USAGE} bad input."
    parts = [f"{OK} done", f"{FAILED} {FAILURES[verb]}", f"{USAGE} bad input"]
    if verb == "compare":
        parts.append(f"{INCONCLUSIVE} not settled (--fail-on-inconclusive)")
    return f"Exit status: {'; '.join(parts)}."
