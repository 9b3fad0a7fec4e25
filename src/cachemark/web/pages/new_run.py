"""A new run from a form, which first shows the planned time; stop and resume."""

import re
from collections.abc import Mapping
from urllib.parse import quote

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from cachemark.host.temporary import temporary_folder
from cachemark.model import experiment_file, suites
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment
from cachemark.runs.parties import check_servers, known_clients, named_clients, server_names
from cachemark.runs.storage.run_limits import named_programs
from cachemark.web.context import Context, context
from cachemark.web.guard import form_of
from cachemark.web.layout import page
from cachemark.web.player import CommandedRun, write_experiment
from cachemark.web.stored import stored_run
from cachemark.web.verbs import run_verb

_PLAN_S = 1200.0
_OPTION = re.compile(r"--([a-z][a-z-]*)")
_WHOLE = ("blocks", "warmup_ms", "measure_ms")
_LONGEST_NUMBER = 9


class RunForm(msgspec.Struct, frozen=True, kw_only=True):
    """The typed form, with the names of `cachemark run`'s options.

    `experiment` is TOML, which replaces the suite. `client` and `server` have a line for each. An
    empty field leaves the suite's setting.
    """

    name: str = ""
    suite: str = "quick"
    experiment: str = ""
    client: str = ""
    server: str = ""
    blocks: str = ""
    warmup_ms: str = ""
    measure_ms: str = ""
    max: str = ""
    margin: str = ""
    quick: str = ""


class Extent(msgspec.Struct, frozen=True, kw_only=True):
    """A planned run: a sentence with its time, and notes about it."""

    text: str
    lines: list[str]


def new_run_page(request: Request) -> Response:
    """The empty form."""
    return _page(request, RunForm(), {})


async def new_run(request: Request) -> Response:
    """Show the extent of the run; or start it, and show it."""
    here = context(request)
    fields = await form_of(request, here.settings)
    form = read_form(fields)
    problems = await run_in_threadpool(form_problems, form, trusted=here.settings.trust_commands)
    extent = None
    try:
        if not problems and fields.get("action") == "start":
            run = await run_in_threadpool(_start, here, _job(form))
            return RedirectResponse(_live_address(run), 303)
        if not problems:
            extent = await run_in_threadpool(_extent, here, _job(form))
    except UsageError as error:
        problems = {_field_of(error, form): str(error)}
    return await run_in_threadpool(_page, request, form, problems, extent)


async def stop(request: Request) -> Response:
    """Stop a run that these pages started. It keeps the finished trials."""
    here = context(request)
    await form_of(request, here.settings)
    run = stored_run(request.path_params["run"], here.settings.root).folder.name
    here.player.stop(run)
    return RedirectResponse(_live_address(run), 303)


async def resume(request: Request) -> Response:
    """Go on with a run that was stopped."""
    here = context(request)
    await form_of(request, here.settings)
    run = stored_run(request.path_params["run"], here.settings.root).folder.name
    trusted = ["--trust-commands"] if here.settings.trust_commands else []
    await run_in_threadpool(
        _start, here, CommandedRun(options=["--resume", *trusted, "--", run], run=run)
    )
    return RedirectResponse(_live_address(run), 303)


def _live_address(run: str) -> str:
    return f"/runs/{quote(run)}/live"


def _page(
    request: Request, form: RunForm, problems: dict[str, str], extent: Extent | None = None
) -> Response:
    here = context(request)
    return page(
        here.settings,
        "new",
        422 if problems else 200,
        form=form,
        problems=problems,
        extent=extent,
        suites=suites.names(),
        clients=sorted(known_clients()),
        servers=server_names(),
        playing=here.player.run,
    )


def read_form(fields: Mapping[str, str]) -> RunForm:
    """The form of a request. The experiment keeps its empty lines: errors have line numbers."""
    typed = {name: fields[name].strip() for name in RunForm.__struct_fields__ if name in fields}
    if typed.get("experiment"):
        typed["experiment"] = fields["experiment"]
    return RunForm(**typed)


def form_problems(form: RunForm, *, trusted: bool) -> dict[str, str]:
    """Errors by field, except errors of the plan."""
    found: dict[str, str] = {}
    clients, servers = _lines(form.client), _lines(form.server)
    planned: Experiment | None = None
    try:
        planned = _experiment(form)
    except UsageError as error:
        found["experiment" if form.experiment else "suite"] = str(error)
    if form.experiment and form.quick:
        found["quick"] = "only suites have a small grid"
    try:
        clients = named_clients(clients)
    except UsageError as error:
        found["client"] = str(error)
    try:
        check_servers(servers)
    except UsageError as error:
        found["server"] = str(error)
    found |= {name: "a whole number, such as 10" for name in _WHOLE if not _is_whole(form, name)}
    if form.blocks.strip("0") == "" and form.blocks:
        found["blocks"] = "one or more"
    if planned is not None and not trusted:
        changed = msgspec.structs.replace(
            planned, clients=clients or planned.clients, servers=servers or planned.servers
        )
        # A user with the right to start runs may start only programs of this machine.
        own = [] if form.experiment else named_programs(planned)
        for named in [text for text in named_programs(changed) if text not in own]:
            field = _field_that_names(named, form)
            found.setdefault(field, f"{named}: only under `cachemark web --trust-commands`")
    return found


def _experiment(form: RunForm) -> Experiment:
    if form.experiment:
        return experiment_file.parse(form.experiment, "experiment")
    if form.suite not in suites.names():
        raise UsageError("choose a suite")  # any other name could be a file's
    return suites.find(form.suite)


def _field_that_names(named: str, form: RunForm) -> str:
    """The field with a text such as `client command:…`; without such a line, the experiment."""
    kind, _, text = named.partition(" ")
    return (
        kind
        if kind in ("client", "server") and text in _lines(getattr(form, kind))
        else ("experiment")
    )


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _is_whole(form: RunForm, name: str) -> bool:
    text: str = getattr(form, name)
    return not text or (text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER)


def _job(form: RunForm) -> CommandedRun:
    """The form as options. A value cannot become an option of its own."""
    typed = [f"--client={text}" for text in _lines(form.client)]
    typed += [f"--server={text}" for text in _lines(form.server)]
    for name in ("name", *_WHOLE, "max", "margin"):
        if value := getattr(form, name):
            typed.append(f"--{name.replace('_', '-')}={value}")
    typed += ["--quick"] if form.quick else []
    return CommandedRun(
        options=typed if form.experiment else [form.suite, *typed], toml=form.experiment
    )


def _extent(here: Context, job: CommandedRun) -> Extent:
    """The plan of the run, as `cachemark run --dry-run` says it. Raises UsageError."""
    here.take()
    try:
        with temporary_folder() as folder:
            file = write_experiment(job.toml, folder)
            said = run_verb("run", *file, *job.options, "--dry-run", timeout_s=_PLAN_S)
    finally:
        here.busy.release()
    *lines, text = said.stderr.strip().splitlines() or [""]
    return Extent(text=text, lines=lines)


def _start(here: Context, job: CommandedRun) -> str:
    """Start a run: its name. Raises UsageError."""
    # A run that was stopped may be about to end. The player releases the machine.
    here.take(within_s=here.player.ends_within_s)
    return here.player.start(job)


def _field_of(error: UsageError, form: RunForm) -> str:
    """The field that an error is about; empty if there is none. Pure."""
    option = _OPTION.search(error.text) or _OPTION.search(error.remedy)
    name = option[1].replace("-", "_") if option else ""
    if name in RunForm.__struct_fields__:
        return name
    return "experiment" if form.experiment else ""
