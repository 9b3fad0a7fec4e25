"""Work that is typed as options of `run`: played, and judged before the first trial."""

import re
from pathlib import Path

import pytest

from tests.builders.small_experiments import read_outcomes, write
from tests.cli.in_process import Inside
from tests.conftest import Cli


def test_typed_work_is_played_and_kept(cli: Cli, tmp_path: Path) -> None:
    words = "--mix get=95,set=5 --size 1k --keys 1k --set workloads.keys.distribution=zipf:0.9"
    ended = cli("run", write(tmp_path, blocks="1"), *words.split())
    assert ended.returncode == 0, ended.stderr
    assert "get 95 : set 5 on 1.00 k items of 1044 bytes on average" in ended.stderr
    assert "How fast is native with this work?" in ended.stdout
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.verdict == "VALID"
    assert outcome.workload.values.size == "1k"
    assert outcome.workload.keys.distribution == "zipf:0.9"
    assert outcome.trial.cell.workload == "get-95-set-5-1k-1k-keys"


def test_data_that_does_not_fit_is_named_in_dry_runs(inside: Inside) -> None:
    large = ("--keys", "100k", "--size", "1k", "--dry-run")
    told = inside("run", "--client", "native", "--server", "memcached", *large)
    assert told.returncode == 0
    assert "100 k items need about 115 MiB, and memcached has 64 MiB" in told.stderr
    assert "memory=152m" in told.stderr
    fits = inside("run", "--client", "native", "--server", "memcached:memory=152m", *large)
    assert "warning" not in fits.stderr


def test_the_first_line_says_what_load_is_played(inside: Inside) -> None:
    load = ("--threads", "2", "--connections", "8", "--depth", "4", "--rate", "2k")
    planned = inside("run", "--client", "native", *load, "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert "poisson at 2.00 k/s, 2 callers, 8 connections, 4 outstanding on each" in planned.stderr


@pytest.mark.parametrize(
    ("keys", "prefill", "said"),
    [
        ("200k", "0", r", of 200 k keys"),
        ("200k", "1", r"on 200 k items .*, of whose keys the tape uses \d+\.\d k"),
        # Few things are counted to the last one.
        ("900", "1", r"on 900 items of .*, of whose keys the tape uses \d+; "),
    ],
)
def test_keys_that_a_plan_leaves_out_are_named(
    keys: str, prefill: str, said: str, inside: Inside
) -> None:
    work = ("--mix", "fetch=1", "--keys", keys, "--ops", "9000" if keys == "200k" else "20")
    few = ("--set", "workloads.records=20") if keys == "900" else ()
    cold = ("--set", f"workloads.prefill={prefill}", "--dry-run")
    planned = inside(
        "run", "--client", "native", "--server", "embedded:memory=1g", *work, *few, *cold
    )
    assert re.search(said, planned.stderr), planned.stderr


def test_a_sequence_keeps_its_steps_whatever_else_is_typed(inside: Inside) -> None:
    """The workload's name is made of the steps and of the size, which is no step."""
    typed = ("--set", "workloads.sequence=set@0 get@0", "--size", "1024", "--client", "native")
    ended = inside("run", *typed, "--dry-run")
    assert ended.returncode == 0, ended.stderr
    assert "set-0-get-0-1024" in ended.stdout


def test_an_option_of_rounds_that_has_no_effect_is_said(inside: Inside) -> None:
    rounds = ("--max", "30s", "--set", "rounds.slice_ms=20", "--set", "rounds.until=fixed")
    typed = ("--client", "native", "--server", "embedded", *rounds, "--dry-run")
    said = inside("run", *typed).stderr
    for option in ("--max", "--set rounds.slice_ms", "--set rounds.until"):
        assert f"{option} has no effect" in said
    assert "no effect" not in inside("run", *typed, "--server", "memcached").stderr


def test_a_host_alone_has_the_port_of_memcached(inside: Inside) -> None:
    # An empty label is refused before any name server is asked.
    ended = inside("drive", "host..invalid", "--duration", "100ms", "--warmup", "0ms")
    assert ended.returncode == 1
    assert "remote:host..invalid:11211" in ended.stdout


def test_a_pattern_names_the_libraries_of_a_language(inside: Inside) -> None:
    planned = inside("run", "--client", "go/*", "--blocks", "1", "--dry-run")
    assert planned.returncode == 0
    assert "go/gomemcache  memcached" in planned.stdout
    assert "go/null" not in planned.stdout
    assert "go/otter" not in planned.stdout
    none = inside("run", "--client", "cobol/*", "--dry-run")
    assert none.returncode == 2
    assert "no client matches 'cobol/*'" in none.stderr


def test_a_number_of_operations_that_nobody_can_play(inside: Inside) -> None:
    """A plan without a trial has no rate to assume."""
    ended = inside("run", "--client", "reference", "--mix", "mget=1", "--ops", "100")
    assert "0 trials" in ended.stdout + ended.stderr
    assert "Not played: reference: has no mget" in ended.stdout
    assert ended.returncode == 1
