"""Requests of the coordinator and answers of agents: values that travel as JSON.

A request is the argument of a Dask task, an answer its result. So Dask carries bytes only.
"""

import msgspec

from cachemark.endpoints.servers import ProcessUse
from cachemark.model import outcome
from cachemark.model.errors import TrialError, UnsupportedError, UsageError
from cachemark.model.experiment import Experiment, Load, RoundsTiming, Timing, Workload
from cachemark.model.plan import Skipped
from cachemark.model.protocol import Done, Prepare, Ready, RunRequest, SliceDone
from cachemark.model.run_header import HostFacts
from cachemark.runs.sittings.meters import CpuReading
from cachemark.runs.tapes import Generations
from cachemark.runs.trials.setting import TrialWork


class SittingArm(TrialWork, frozen=True, kw_only=True):
    """A cell of a sitting; `number` is its server's number in `StartServers`."""

    number: int
    client: str
    server: str
    started: "StartedServer"
    generations: Generations | None = None


class HostRequest(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Something that an agent does in one go."""


class Identify(HostRequest, frozen=True, kw_only=True, tag="identify"):
    """Who are you? Answer: `Identity`."""


class Examine(HostRequest, frozen=True, kw_only=True, tag="examine"):
    """Is your machine fit to measure? Answer: a list of the doctor's `Check`."""


class ReadClock(HostRequest, frozen=True, kw_only=True, tag="read_clock"):
    """Compare your clock with the coordinator's. Answer: `ClockReading`."""

    address: str
    port: int
    key: bytes


class OfferBytes(HostRequest, frozen=True, kw_only=True, tag="offer_bytes"):
    """Send bytes to the next host that connects. Answer: the port."""


class ReceiveBytes(HostRequest, frozen=True, kw_only=True, tag="receive_bytes"):
    """Read the bytes of the server's host. Answer: bytes per second, a float."""

    address: str
    port: int


class AuditServers(HostRequest, frozen=True, kw_only=True, tag="audit_servers"):
    """Check the servers and levels of the experiment. Answer: `Audit`."""

    experiment: Experiment
    skipped: list[Skipped] = []


class WriteTape(HostRequest, frozen=True, kw_only=True, tag="write_tape"):
    """Write the tape that the following trial plays. Answer: `TapeFacts`."""

    workload: Workload
    load: Load
    timing: Timing
    seed: int
    generations: Generations | None = None


class StartServers(HostRequest, frozen=True, kw_only=True, tag="start_servers"):
    """Start fresh servers: one for a trial, one for each arm of a sitting.

    Answer: a list of `ServerStart`.
    """

    servers: list[str]


class StartWorkers(HostRequest, frozen=True, kw_only=True, tag="start_workers"):
    """Start fresh workers of a client, and say hello to them. Answer: `StartedWorkers`.

    `arm` is the number of their server in `StartServers`, here and below.
    """

    arm: int = 0
    client: str
    load: Load
    ready_s: float


class PrepareWorkers(HostRequest, frozen=True, kw_only=True, tag="prepare_workers"):
    """Connect the workers. They play the segments from `first` on, of `segments`; no answer.

    `tls` comes from the `StartedServer`: the host writes the files.
    """

    arm: int = 0
    request: Prepare
    tls: dict[str, str] = {}
    first: int
    segments: int
    ready_s: float


class ReadServer(HostRequest, frozen=True, kw_only=True, tag="read_server"):
    """Read a server's counters. Answer: `ServerReading`."""

    arm: int = 0


class BeginWindow(HostRequest, frozen=True, kw_only=True, tag="begin_window"):
    """Watch this host, and sample its server. Answer: `ServerReading`.

    `tick_s`: as in `Sampler`.
    """

    tick_s: float | None = None


class PlayPhase(HostRequest, frozen=True, kw_only=True, tag="play_phase"):
    """Play a phase on all workers of this host. Answer: `Played`.

    `run.ops` is the number for the workers of all hosts together.
    """

    arm: int = 0
    run: RunRequest
    silence_s: float


class PlaySitting(HostRequest, frozen=True, kw_only=True, tag="play_sitting"):
    """Play a sitting against servers that run already. Answer: a list of `Outcome`.

    The whole order of play follows from the seed, so no request comes between two slices.
    """

    sets: list[list[SittingArm]]
    rounds: RoundsTiming
    grown_ms: float = 0.0
    seed: int


class HostBeginSlices(HostRequest, frozen=True, kw_only=True, tag="begin_slices"):
    """Make an arm's workers ready for slices. Answer: `TurnCost`."""

    arm: int
    ready_s: float


class PlaySlices(HostRequest, frozen=True, kw_only=True, tag="play_slices"):
    """Play slices of several arms, each at its time by this host's clock. Answer: `HostSlices`."""

    slices: "list[PlannedSlice]"


class HostEndSlices(HostRequest, frozen=True, kw_only=True, tag="end_slices"):
    """End an arm's slices. Answer: `Done`, the sum of all that were played on this host."""

    arm: int


class EndWindow(HostRequest, frozen=True, kw_only=True, tag="end_window"):
    """Stop watching. Answer: `WindowReading`."""


class EndTrial(HostRequest, frozen=True, kw_only=True, tag="end_trial"):
    """Stop the server and the workers. Answer: the end of the workers' log, as text."""


AnyRequest = (
    Identify | Examine | ReadClock | OfferBytes | ReceiveBytes | AuditServers | WriteTape
    | StartServers | StartWorkers | PrepareWorkers | ReadServer | BeginWindow | PlayPhase
    | PlaySitting | HostBeginSlices | PlaySlices | HostEndSlices | EndWindow | EndTrial
)  # fmt: skip


class Software(msgspec.Struct, frozen=True, kw_only=True):
    """Which cachemark a host has. The hashes are of the engine and of all Python sources."""

    version: str
    engine_sha256: str
    source_sha256: str


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """A host and the software on it. `absent_cpus`: CPUs of the hosts file that it lacks."""

    facts: HostFacts
    software: Software
    absent_cpus: list[int] = []


class StartedServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server that answers; `empty` is its use of resources before the first operation.

    `controls` are the addresses of its members that have `stats`. `tls` has the options of workers
    that encrypt, with the contents of the files; empty: they do not.
    """

    addresses: list[str]
    controls: list[str]
    tls: dict[str, str] = {}
    facts: outcome.ServerFacts
    empty: ProcessUse | None
    binaries: list[outcome.Binary]


class ServerStart(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the start of a server: it answers, or the reason why it does not."""

    started: StartedServer | None = None
    failure: "HostFailure | None" = None


class StartedWorkers(msgspec.Struct, frozen=True, kw_only=True):
    """Workers that have answered hello. `cpus` are their CPUs, empty for any."""

    ready: Ready
    count: int
    command: list[str]
    cpus: str
    binaries: list[outcome.Binary]


class ServerReading(msgspec.Struct, frozen=True, kw_only=True):
    """The `stats` of each member of this host's server; `use` if it is one process of ours."""

    stats: list[dict[str, str]] = []
    use: ProcessUse | None = None


class HostPlayed(msgspec.Struct, frozen=True, kw_only=True):
    """A phase on one host. `late_ns`: the delay of its workers' request after the planned start.

    `observed`: what the agent saw of them.
    """

    done: Done
    observed: outcome.Observed | None = None
    began_unix_ns: int
    late_ns: int


class WindowReading(msgspec.Struct, frozen=True, kw_only=True):
    """The readings of one host in a window. `samples` and `command_counts` are of its server."""

    server: ServerReading
    noise: outcome.HostNoise
    samples: list[outcome.Sample] = []
    command_counts: list[outcome.CommandCount] = []
    sampler_began_unix_ns: int = 0


class PlannedSlice(msgspec.Struct, frozen=True, kw_only=True):
    """A slice of an arm, and when it starts by the clock of the host that plays it."""

    arm: int
    start_unix_ns: int
    length_us: int
    lead_in_us: int


class PlayedSlice(msgspec.Struct, frozen=True, kw_only=True):
    """A slice on one host. `done` is None if it was not played: it was too late, or the clock had
    been set.

    `late_ns`: how long after the planned start its workers were asked. `stepped_ns`: how far the
    clock had been set since the first slice of the request. `wall_ns`: from the planned start to
    the last answer. `paused_ns`: how much longer than planned it was, if a worker was stopped in
    it or the host paused.
    """

    late_ns: int
    stepped_ns: int = 0
    done: SliceDone | None = None
    wall_ns: int = 0
    paused_ns: int = 0
    cpu: CpuReading = CpuReading()


class ArmFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why an arm's workers play no more slices on a host."""

    arm: int
    text: str
    remedy: str = ""


class HostSlices(msgspec.Struct, frozen=True, kw_only=True):
    """The requested slices that a host played, one entry for each."""

    played: list[PlayedSlice]
    failures: list[ArmFailure] = []


class HostFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request failed. `unsupported`: it can never be done on that host."""

    text: str
    remedy: str = ""
    unsupported: bool = False

    @staticmethod
    def of(error: TrialError | UsageError) -> "HostFailure":
        """An agent's answer to an error."""
        never = isinstance(error, UnsupportedError)
        return HostFailure(text=error.text, remedy=error.remedy, unsupported=never)

    def error(self, host: str) -> TrialError:
        """The exception to raise at the coordinator, with the host's name."""
        kind = UnsupportedError if self.unsupported else TrialError
        return kind(f"{host}: {self.text}", self.remedy)


class HostAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a request, as it is sent: a value, or why there is none."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    failure: HostFailure | None = None


# Write a message as JSON, and read it again. The readers raise one of `errors.DECODE_ERRORS`.
encode = msgspec.json.encode
_requests: msgspec.json.Decoder[AnyRequest] = msgspec.json.Decoder(AnyRequest)
decode_request, decode_answer = _requests.decode, msgspec.json.Decoder(HostAnswer).decode
