"""The meaning of each verdict and rule, and its remedy, for `cachemark explain`."""

import msgspec


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """`meaning`: what was seen, and why it matters. `remedy`: what to change, if anything."""

    meaning: str
    remedy: str = ""


VERDICTS: dict[str, Explanation] = {
    "VALID": Explanation(
        meaning="No rule speaks against the trial: its figures count. Single percentiles of an "
        "open loop may still be withheld, each with a reason.",
    ),
    "INVALID": Explanation(
        meaning="The figures cannot be trusted, so they are withheld: the counts of client and "
        "server differ, a reply was wrong, nothing was measured, or the machine disturbed the "
        "clients unequally.",
        remedy="Look at the rule that is named beside the trial: `cachemark explain RULE`.",
    ),
    "OVERLOAD": Explanation(
        meaning="An open loop did not hold its schedule: fewer operations were sent or answered "
        "than were due. Response times then grow with the length of the window, so they describe "
        "no load.",
        remedy="Lower --rate, or add connections, threads or processes to the load.",
    ),
    "NON_STATIONARY": Explanation(
        meaning="The response time of an open loop rose throughout the window, so its percentiles "
        "depend on how long the window was. Closed loops never get this verdict.",
        remedy="Lower --rate, or play a longer timing.warmup_ms.",
    ),
}

# The states of a trial that has no verdict.
STATES: dict[str, Explanation] = {
    "unsupported": Explanation(
        meaning="The trial was not played, as the client or the server can never do its work, or "
        "is not installed. The reason stands beside it.",
        remedy="Look at what is missing: `cachemark clients`, or `cachemark probe SERVER`.",
    ),
    "failed": Explanation(
        meaning="The trial was begun and could not be played to its end, because of the server or "
        "a worker. The reason stands beside it.",
        remedy="Mend what the reason names, then play the rest: `cachemark run --resume`.",
    ),
}

RULES: dict[str, Explanation] = {
    "own-counts": Explanation(
        meaning="The worker's own counts contradict each other: attempts are not the sum of "
        "successes, errors and wrong values.",
        remedy="A bug of the worker: run `cachemark conform CLIENT`.",
    ),
    "group-counts": Explanation(
        meaning="The worker's groups contradict its operations: groups × length differs from the "
        "operations by more than the callers' unfinished groups, or a group has no time.",
        remedy="A bug of the worker: run `cachemark conform CLIENT`.",
    ),
    "server-counters": Explanation(
        meaning="A counter of the server rose by another number than the client counted: commands "
        "were lost, sent twice or never sent, or somebody else uses the server.",
        remedy="`cachemark explain RUN CELL` has both numbers. Keep other users away from the "
        "server; `cachemark conform CLIENT` finds bugs of a worker.",
    ),
    "server-bytes": Explanation(
        meaning="The server's count of bytes cannot be that of the keys and values that the client "
        "told: values were cut or dropped, or other bytes were sent than the client counted.",
        remedy="Keep other users away from the server; `cachemark conform CLIENT` finds bugs of a "
        "worker. With other values than the tape's, use the client with `@defaults`.",
    ),
    "wrong-values": Explanation(
        meaning="A reply had a value that was never stored under that key.",
        remedy="A bug of the client or the server, or other clients use the same keys.",
    ),
    "nothing-done": Explanation(
        meaning="No operation succeeded in the window.",
        remedy="Look at the errors of the trial: `cachemark report RUN`.",
    ),
    "no-window": Explanation(meaning="The window had no length, so there is no rate."),
    "idle-servers": Explanation(
        meaning="Of several servers, one got no command: the client did not spread its keys.",
        remedy="Use a client that claims `cluster`: `cachemark clients`.",
    ),
    "lost-without-reply": Explanation(
        meaning="A connection was lost while operations without a reply were on their way, and "
        "the server has no counter for the ones that arrived.",
        remedy="Look for time-outs in the log of the trial; raise timing.timeout_ms, or use a "
        "server that counts as memcached does: `cachemark probe SERVER`.",
    ),
    "failed-connects": Explanation(
        meaning="The client could not open a connection at once, and tried again later. Operations "
        "are missing from the rate while it waited.",
        remedy="Compare the connections with the server's limit (max_connections). If connections "
        "are closed after a number of operations, the kernel keeps each closed port for a minute: "
        "use more operations for each connection, or a Unix socket.",
    ),
    "distrust": Explanation(
        meaning="The probe found that the server's counters are wrong, so the client's counts "
        "cannot be compared with them.",
        remedy="`cachemark probe SERVER` shows what it counts.",
    ),
    "evictions": Explanation(
        meaning="The server evicted items. In a fill that makes the trial INVALID, as the memory "
        "of an item is then unknown; elsewhere it is a note, as reads miss.",
        remedy="Give the server more memory, or store fewer items.",
    ),
    "connections-bound": Explanation(
        meaning="Operations were due and waited for a connection. Their wait is in the response "
        "time.",
        remedy="Add --connections, unless the wait is what you want to measure.",
    ),
    "beyond-histogram": Explanation(
        meaning="Times above 100 s, the highest value of a histogram, are shown as 100 s.",
    ),
    "no-lag": Explanation(
        meaning="The worker did not report how late it sent, so it is unknown whether the times "
        "are the server's or the generator's.",
        remedy="A bug of the worker: run `cachemark conform CLIENT`.",
    ),
    "achieved": Explanation(
        meaning="Fewer operations were sent or answered than the schedule asked for.",
        remedy="Lower --rate, or add connections, threads or processes.",
    ),
    "load-missed": Explanation(
        meaning="The load generators beside the measuring client made less load than the schedule "
        "asked for, so the response times belong to another load.",
        remedy="Lower --rate. If the generators themselves were late, give the load more "
        "processes, or more hosts.",
    ),
    "send-lag": Explanation(
        meaning="The client itself sent late, so its response times have a part that is not the "
        "server's. Percentiles that this can have moved too far are withheld.",
        remedy="Use fewer callers than CPUs, more loads.processes, or a lower --rate.",
    ),
    "warm-up": Explanation(
        meaning="The beginning of the window was slower than the rest.",
        remedy="Play a longer timing.warmup_ms.",
    ),
    "levels": Explanation(
        meaning="The window has parts of different speed, such as before and after the machine "
        "changed its clock rate.",
    ),
    "drift": Explanation(
        meaning="Speed or response time changed steadily throughout the window.",
        remedy="Play a longer timing.warmup_ms; in an open loop, lower --rate.",
    ),
    "steal": Explanation(
        meaning="The hypervisor gave the CPU's time to other machines.",
        remedy="Use rounds, which compare within the same seconds, or a machine of your own.",
    ),
    "foreign-cpu": Explanation(
        meaning="Processes outside the measurement used CPU time.",
        remedy="`cachemark doctor` names what else runs.",
    ),
    "memory-pressure": Explanation(
        meaning="Processes waited for memory.", remedy="Give servers less memory, or free some."
    ),
    "io-pressure": Explanation(meaning="Processes waited for a disk."),
    "cpu-pressure": Explanation(
        meaning="Processes of the measurement waited for a CPU beside others.",
        remedy="Use fewer callers, or stop what else runs.",
    ),
    "throttled": Explanation(
        meaning="A CPU quota stopped the server or a worker.",
        remedy="Raise the quota of the container.",
    ),
    "swap-in": Explanation(meaning="Pages were read back from swap.", remedy="Free memory."),
    "too-hot": Explanation(meaning="A CPU ran slower because of heat.", remedy="Cool the machine."),
    "oom-kills": Explanation(
        meaning="The kernel killed a process because memory ran out.", remedy="Free memory."
    ),
    "machine-checks": Explanation(meaning="The hardware reported an error."),
    "mhz": Explanation(
        meaning="The CPU changed its frequency within the window.",
        remedy="Fix the frequency, or use rounds: `cachemark doctor` says how.",
    ),
    "retransmits": Explanation(meaning="TCP sent segments again, which takes 200 ms and more."),
    "accept-drops": Explanation(
        meaning="The kernel dropped connections before the server accepted them.",
    ),
    "packet-drops": Explanation(meaning="The kernel dropped packets."),
    "pauses": Explanation(
        meaning="The whole machine stood still for a moment: a thread that only sleeps woke late.",
    ),
    "long-pause": Explanation(
        meaning="The client was stopped, or the machine stood still, for a part of the window of a "
        "closed loop. The rate is too low by this part. Above 5 % the figures do not count. In "
        "rounds, a slice with a pause is in no rate, and percentiles that its times can have moved "
        "too far are withheld; with more than a tenth of such slices, the arm does not count.",
        remedy="Find what stops the client (a debugger, a job control) or the machine (a snapshot, "
        "suspend, a full host); or play more and longer windows.",
    ),
    "own-clock": Explanation(
        meaning="A worker reports the length of its window itself, and its rate is divided by it. "
        "The time that passed outside of the worker was another one, so the rate is wrong.",
        remedy="Correct the worker: `elapsed_ns` runs from the start to the last reply.",
    ),
    "own-cpu": Explanation(
        meaning="A worker reports less CPU time than the kernel counted for its processes.",
        remedy="Correct the worker: its CPU time is that of all of its threads and processes.",
    ),
    "clock-step": Explanation(
        meaning="Somebody set the clock within the window.", remedy="Stop the time service."
    ),
    "kernel-log": Explanation(
        meaning="The kernel's log has a line about trouble within the window, such as a hung task "
        "or a disk error.",
    ),
    "start-skew": Explanation(
        meaning="Hosts that play one tape may have started at different times: by the errors of "
        "their clocks' comparison, and by requests that came late. Above 1 % of the window they "
        "did not play together.",
        remedy="A network with shorter round trips between the hosts, less load, or a longer "
        "--measure-ms. `cachemark hosts check` shows the clocks.",
    ),
    "void-slices": Explanation(
        meaning="Several hosts play each slice together. In some slices, two of them may have "
        "started more than 1 ms apart: a host was late, or its clock moved. These slices are in no "
        "rate. Percentiles that their times can have moved too far are withheld. With more than a "
        "tenth of the slices void, the arm does not count.",
        remedy="A network with shorter round trips between the hosts, less load on them, or "
        "--set design=trials. `cachemark hosts check` shows the clocks.",
    ),
    "slice-bias": Explanation(
        meaning="A slice counts each caller from its first completion to its last one. If many "
        "callers share a CPU in random order, the last of them have the CPU for themselves, so the "
        "rate is too high. Slices grow until that is below 1 %, but at most to half a second, and "
        "the operations of this client are too slow for that.",
        remedy="--set design=trials, or fewer callers.",
    ),
    "host-differs": Explanation(
        meaning="One host of clients had another rate, or another median response time, than the "
        "others, although all play equal parts of one tape. The sum of all hosts hides that.",
        remedy="Compare the hosts' machines, noise and network in the report's table of hosts; or "
        "leave that host out.",
    ),
    "clock-jump": Explanation(
        meaning="The clock of a host moved against the coordinator's during the trial, by more "
        "than adjusting its rate can explain.",
        remedy="Let chrony or ntpd settle before the run; do not set clocks by hand.",
    ),
}
