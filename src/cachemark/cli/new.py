"""`cachemark new`: write an experiment file with comments, from options or from answers."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from cachemark.cli.output import print_sentences, write_out
from cachemark.cli.overrides import Overrides, planned_experiment
from cachemark.cli.run_options import RunOptions
from cachemark.cli.set_option import named_by_path
from cachemark.endpoints.servers import parse_spec
from cachemark.model import suites
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment
from cachemark.model.experiment_file import parse
from cachemark.model.experiment_settings import experiment_text
from cachemark.report.console import plain_console

Ask = Callable[[str, str], str]


def new(
    file: Annotated[Path, Parameter(help="the file to write, such as mine.toml")],
    *,
    options: Annotated[RunOptions | None, Parameter(name="*")] = None,
    force: Annotated[bool, Parameter(help="replace the file if it exists")] = False,
) -> None:
    """Write an experiment file with comments. On a terminal it asks for all that no option names.

    `cachemark run FILE` plays it. docs/experiment.md has every setting.
    """
    if file.suffix != ".toml":
        raise UsageError(f"{file}: an experiment is a TOML file", f"write {file}.toml")
    if file.exists() and not force:
        raise UsageError(f"{file} exists", "choose another name, or --force")
    options = options or RunOptions()
    if not options.are_given and sys.stdin.isatty():
        options = answered(_ask)
    with named_by_path(RunOptions.names()):
        text = experiment_text(_experiment(file, options.overrides()))
    # An unreadable file would be a bug of this verb.
    parse(text, str(file))
    write_out(file, text)
    print_sentences(f"{file} is written; see what it plays: cachemark run {file} --dry-run")


def answered(ask: Ask) -> RunOptions:
    """The options that follow from the answers. An empty answer takes the default."""
    clients = ask("Clients, such as native, python/pymemcache or go/*", "python/*")
    servers = ask("Servers, such as memcached:memory=1g or remote:HOST:PORT", "memcached")
    mix = ask("Operations and their weights", "get=9,set=1")
    size = ask("Bytes of a value: 100, 1k..64k, lognormal:300:1", "100")
    keys = ask("Number of keys", "10k")
    threads = ask("Callers; several numbers are compared", "1")
    rate = ask("Operations per second of an open loop; empty: as fast as possible", "")
    return RunOptions(
        client=_words(clients),
        server=_words(servers),
        mix=mix,
        size=size,
        keys=keys,
        threads=tuple(map(_number, _words(threads))),
        rate=rate or None,
    )


def _experiment(file: Path, typed: Overrides) -> Experiment:
    """The experiment of the options. Raises UsageError."""
    planned = planned_experiment(suites.BASE, typed)
    for text in planned.servers:
        parse_spec(text)
    return msgspec.structs.replace(planned, name=file.stem, analysis="")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def _number(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"callers: {text!r} is not a number", "write 1, or 1 4 16")
    return int(text)


def _ask(question: str, offered: str) -> str:
    console = plain_console(stderr=True)
    hint = f" [{offered}]" if offered else ""
    console.print(f"{question}{hint}: ", end="", markup=False, highlight=False)
    return sys.stdin.readline().strip() or offered
