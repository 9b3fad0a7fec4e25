"""`cachemark why`: bad input is one error; a real pair of clients gives all forms."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cachemark.cli.compare_builds import reasons
from cachemark.host.system_calls import missing_reason
from cachemark.model.experiment import Load, Workload
from cachemark.model.suites import BASE, find
from tests.cli.in_process import Inside

PAIR = ("--client", "reference", "--client", "native")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "no client is named"),
        ((*PAIR, "--repeat", "2"), "--repeat 2: 3 to 100"),
        ((*PAIR, "--schedule", "poisson", "--rate", "1k"), "in a closed loop"),
        ((*PAIR, "--think", "1ms"), "without think time"),
        ((*PAIR, "--sequence", "set@0 get@0"), "a trace or a sequence has none"),
        (("clients", *PAIR), "several"),
        (("--client", "nobody/nothing"), "nobody/nothing"),
        ((*PAIR, "--past", "nowhere.json"), "--past nowhere.json"),
        ((*PAIR, "--server", "embedded", "--server", "memcached"), "compared with each other"),
        (("--client", "php/apcu", "--server", "memcached"), "compared with each other"),
        (("--client", "native", "--server", "memcached", "--profile", "x"), "leave out --server"),
        (("--client", "native", "--server", "memcached", "--instructions"), "leave out --server"),
    ],
)
def test_bad_input_is_one_error(inside: Inside, words: tuple[str, ...], error: str) -> None:
    said = inside("why", *words)
    assert said.returncode == 2
    assert error in said.stderr
    assert not said.stdout


def test_an_earlier_answer_about_other_work_is_refused(inside: Inside, tmp_path: Path) -> None:
    out = tmp_path / "why.json"
    one = ("--client", "reference", "--mix", "get=1", "--repeat", "3")
    assert inside("why", *one, "--format", "json", "--out", str(out)).returncode == 0
    said = inside("why", *one, "--size", "10k", "--past", str(out))
    assert said.returncode == 2
    assert "has counts of other work: 200 keys (20 B), values of 100 B" in said.stderr
    assert "values of 10,240 B" in said.stderr
    assert not said.stdout


def test_two_clients_are_counted(inside: Inside, tmp_path: Path) -> None:
    out = tmp_path / "why.json"
    words = ("--mix", "get=1", "--repeat", "3", "--format", "json", "--out", str(out))
    said = inside("why", *PAIR, *words)
    assert said.returncode == 0, said.stderr
    report = json.loads(out.read_text())
    assert [each["client"] for each in report["counted"]] == ["reference", "native"]
    for each in report["counted"]:
        assert len(each["repetitions"]) == 3
        assert all(counts["bytes_in"] == len("get \r\n") + 20 for counts in each["repetitions"])
        assert all(counts["turns"] == 1 for counts in each["repetitions"])
        if not missing_reason():
            assert all(counts["sends"] >= 1 for counts in each["repetitions"])
    (difference,) = report["differences"]
    assert (difference["client"], difference["base"]) == ("native", "reference")


def test_a_client_without_a_sampler_gets_no_folder(inside: Inside, tmp_path: Path) -> None:
    words = ("--client", "reference", "--mix", "get=1", "--repeat", "3")
    said = inside("why", *words, "--profile", str(tmp_path / "flames"))
    assert said.returncode == 0, said.stderr
    assert "reference has no profile: its worker has no sampler." in said.stdout
    assert not (tmp_path / "flames").exists()


def test_a_client_without_the_last_kind_keeps_its_version(inside: Inside) -> None:
    said = inside("why", "--client", "reference", "--mix", "get=1,mget=1", "--repeat", "3")
    assert said.returncode == 1, said.stderr
    assert "Versions: reference 1." in said.stdout
    assert "reference was not counted: reference has no mget." in said.stdout


@pytest.mark.slow("counts two servers")
def test_two_builds_of_a_server_have_their_causes_counted() -> None:
    compared = msgspec.structs.replace(
        find(BASE),
        clients=["native"],
        servers=["embedded:io=blocking", "embedded"],
        workloads=[Workload(name="get", mix={"get": 1})],
        loads=[Load(name="one")],
    )
    (said,) = reasons(compared)
    assert said.startswith("Why, for each get: ")
    assert "embedded:io=blocking" in said
    assert "Remedy" not in said


@pytest.mark.slow("counts three servers")
def test_servers_are_counted_as_a_client_plays(inside: Inside, tmp_path: Path) -> None:
    out = tmp_path / "why.json"
    servers = ("--server", "embedded:io=blocking", "--server", "embedded", "--server", "memcached")
    words = ("--mix", "get=1", "--repeat", "3", "--format", "json", "--out", str(out))
    said = inside("why", "--client", "native", *servers, *words)
    assert said.returncode == 0, said.stderr
    report = json.loads(out.read_text())
    blocking, polling, memcached = (each["repetitions"] for each in report["counted"])
    assert all(each["user_us"] + each["system_us"] > 0 for each in blocking + polling + memcached)
    if not missing_reason():
        assert [each["sends"] for each in blocking + memcached] == pytest.approx([1] * 6, abs=0.1)
        assert [each["polls"] for each in blocking] == pytest.approx([0] * 3, abs=0.1)
        assert all(each["polls"] > 0.9 for each in polling)
    assert report["player"] == "native"
    assert [each["base"] for each in report["differences"]] == ["embedded:io=blocking"] * 2


@pytest.mark.slow("counts twice")
def test_an_earlier_answer_is_the_first_to_compare_with(inside: Inside, tmp_path: Path) -> None:
    def counted(name: str, *words: str) -> Any:
        out = tmp_path / name
        more = ("--client", "native", "--mix", "get=1", "--repeat", "3", "--format", "json")
        said = inside("why", *more, *words, "--out", str(out))
        assert said.returncode == 0, said.stderr
        return json.loads(out.read_text())

    counted("before.json")
    again = counted("after.json", "--past", str(tmp_path / "before.json"))
    (difference,) = again["differences"]
    assert (difference["client"], difference["base"]) == ("native", "before.json: native")
    assert again["missing"][-1].startswith("Times of an earlier answer")
