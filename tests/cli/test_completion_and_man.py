"""Scripts for shells and manual pages: of both programs, and as complete as `--help`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cachemark.cli.program import app
from cachemark.host.process import ENGINE, binary_path
from tests.cli.in_process import Inside
from tests.conftest import ROOT
from tests.docs.test_commands import blocks

STORE = ROOT / "tests" / "runs" / "storage" / "earlier_versions" / "0.1.0"
VERBS = {name for name in app if not name.startswith("-")}
ENGINE_VERBS = {"serve", "tape", "worker", "drive", "store", "null-client", "completion", "man"}
# Asks bash what it would offer for the words.
ASK_BASH = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
function=$(complete -p "$1" | sed 's/.*-F \\([^ ]*\\).*/\\1/')
"$function" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
# Asks zsh which verbs it would offer: its own functions are replaced, as they need a terminal.
ASK_ZSH = """
fpath=("$1" $fpath)
autoload -Uz _cachemark
_arguments() { state=cmds }
_describe() { print -l -- ${(P)4} }
words=(cachemark comp)
CURRENT=2
_cachemark
"""


def shell(script: Path, *command: str) -> str:
    """The output of a shell in the script's folder; it finds `cachemark` on PATH."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=script.parent,
        env={**os.environ, "PATH": path, "HOME": str(script.parent)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def offered(script: Path, *words: str) -> set[str]:
    """The completions of bash for the last of the words."""
    return set(shell(script, "bash", "-c", ASK_BASH, "bash", str(script), *words).split())


def fish_offers(script: Path, line: str) -> set[str]:
    """The completions of fish for the last word of a line."""
    said = shell(script, "fish", "--no-config", "-c", f"source {script}; complete -C '{line}'")
    return {offer.partition("\t")[0] for offer in said.splitlines()}


def stored(folder: Path) -> str:
    """The name of the one run of a store in the folder."""
    (run,) = STORE.iterdir()
    shutil.copytree(run, folder / "results" / run.name)
    return run.name


def engine(*words: str) -> str:
    ended = subprocess.run([binary_path(), *words], capture_output=True, text=True, check=True)
    return ended.stdout


def test_bash_completes_verbs_options_and_choices(inside: Inside, tmp_path: Path) -> None:
    script = tmp_path / "cachemark"
    script.write_text(inside("completion", "bash").stdout, encoding="utf-8")
    assert offered(script, "cachemark", "comp") == {"compare", "completion"}
    assert offered(script, "cachemark", "compare", "--fail") == {
        "--fail-on-regression",
        "--fail-on-inconclusive",
    }
    assert offered(script, "cachemark", "completion", "") == {"bash", "zsh", "fish"}


@pytest.mark.slow("it starts cachemark for each of 18 command lines")
def test_bash_completes_names_that_only_this_machine_knows(inside: Inside, tmp_path: Path) -> None:
    script = tmp_path / "cachemark"
    script.write_text(inside("completion", "bash").stdout, encoding="utf-8")
    run = stored(tmp_path)
    (tmp_path / "mine.toml").touch()
    (tmp_path / "quiet").mkdir()
    for words, wanted in {
        ("report", "2026"): {run},
        ("compare", run, "2026"): {run},
        ("run", "--resume", "2026"): {run},
        ("report", "--runs", "elsewhere", "2026"): set[str](),
        ("report", "--format", "m"): {"markdown"},
        ("run", "qui"): {"quick", "quiet/"},
        ("run", "mi"): {"mine.toml"},
        ("run", "quick", "--client", "python/pym"): {"python/pymemcache"},
        ("run", "quick", "--server", "emb"): {"embedded"},
        ("run", "server-modes", "--workload", ""): {"txn-100", "txn-20000"},
        ("run", "quick", "--set", "loads.ref"): {"loads.refill="},
        ("run", "quick", "--set", "loads.refill="): {"loads.refill=all", "loads.refill=each"},
        ("run", "quick", "--set", "workloads.preset=ycsb-a"): {"workloads.preset=ycsb-a"},
        ("compare", run, "--client", ""): {"native"},
        ("compare", "--play", "--client", "go/gomemcache-"): {"go/gomemcache-grafana"},
        ("explain", "OVER"): {"OVERLOAD"},
        ("setup", "pyth"): {"python"},
        ("resilience", "--faults", "idle"): {"idle-closed"},
    }.items():
        assert offered(script, "cachemark", *words) == wanted, words


def test_bash_completes_the_engine(tmp_path: Path) -> None:
    script = tmp_path / ENGINE
    script.write_text(engine("completion", "bash"), encoding="utf-8")
    assert offered(script, ENGINE, "null-") == {"null-server", "null-client"}
    assert offered(script, ENGINE, "drive", "--max-e") == {"--max-errors"}
    assert offered(script, ENGINE, "drive", "--preset", "ycsb-a") == {"ycsb-a"}


@pytest.mark.parametrize(
    ("shell", "installed"),
    [
        ("zsh", "#compdef {}"),
        ("fish", "complete -c {}"),
    ],
)
def test_other_shells_have_every_verb_too(shell: str, installed: str, inside: Inside) -> None:
    scripts = {
        "cachemark": (inside("completion", shell).stdout, VERBS),
        ENGINE: (engine("completion", shell), ENGINE_VERBS),
    }
    for program, (script, verbs) in scripts.items():
        assert installed.format(program) in script
        assert {verb for verb in verbs if verb not in script} == set()
        if shutil.which(shell):
            subprocess.run([shell, "-n"], input=script, text=True, check=True)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="apt-get install zsh")
def test_zsh_completes_verbs(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "_cachemark").write_text(inside("completion", "zsh").stdout, encoding="utf-8")
    command = ["zsh", "-f", "-c", ASK_ZSH, "zsh", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert {line.partition(":")[0] for line in ended.stdout.splitlines()} == VERBS


@pytest.mark.skipif(shutil.which("fish") is None, reason="apt-get install fish")
def test_fish_completes_verbs_options_and_choices(inside: Inside, tmp_path: Path) -> None:
    script = tmp_path / "cachemark.fish"
    script.write_text(inside("completion", "fish").stdout, encoding="utf-8")

    assert fish_offers(script, "cachemark comp") == {"compare", "completion"}
    assert fish_offers(script, "cachemark compare --fail") == {
        "--fail-on-regression",
        "--fail-on-inconclusive",
    }
    assert fish_offers(script, "cachemark completion ") == {"bash", "zsh", "fish"}
    run = stored(tmp_path)
    assert fish_offers(script, "cachemark report 2026") == {run}
    assert "native" in fish_offers(script, "cachemark run quick --client nat")


@pytest.mark.slow("starts six programs of a new user, in turn")
def test_the_pages_commands_install_all_scripts_for_a_new_user(tmp_path: Path) -> None:
    (text,) = (text for _, text in blocks("docs/install.md") if "completion bash" in text)
    assert shell(tmp_path / "script", "sh", "-e", "-c", text) == ""
    found = {path.name for path in tmp_path.rglob("*cachemark*") if path.stat().st_size}
    names = [f"{begin}{program}" for begin in ("", "_") for program in ("cachemark", ENGINE)]
    assert found == {*names, "cachemark.fish", f"{ENGINE}.fish"}


def test_an_unknown_shell_is_bad_input(inside: Inside) -> None:
    assert inside("completion", "tcsh").returncode == 2


def test_cachemark_writes_a_page_of_each_verb(inside: Inside, tmp_path: Path) -> None:
    before = inside("run", "--help").stdout
    assert inside("man", "pages").returncode == 0
    assert inside("run", "--help").stdout == before
    pages = {path.name for path in (tmp_path / "pages").iterdir()}
    assert pages == {"cachemark.1"} | {f"cachemark-{verb}.1" for verb in VERBS}
    page = (tmp_path / "pages" / "cachemark-compare.1").read_text(encoding="utf-8")
    assert ".SH NAME\ncachemark\\-compare \\- Compare two runs, or two clients" in page
    assert "\n.TP\n\\fB\\-\\-margin FLOAT\\fR\nsmallest relevant difference in percent" in page
    assert "[choices: table, markdown, csv, json, html, junit] [default: table]" in page
    assert ".SH EXIT STATUS\n.nf\n" in page
    if shutil.which("groff"):
        written = sorted((tmp_path / "pages").iterdir())
        command = ["groff", "-Kutf8", "-man", "-ww", "-Tutf8", *map(str, written)]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == ""


def test_the_engine_writes_a_page_of_each_verb(tmp_path: Path) -> None:
    engine("man", str(tmp_path))
    pages = {path.name for path in tmp_path.iterdir()}
    assert {f"{ENGINE}.1"} | {f"{ENGINE}-{verb}.1" for verb in ENGINE_VERBS} <= pages
    page = (tmp_path / f"{ENGINE}-drive.1").read_text(encoding="utf-8")
    assert "Load a server from the command line" in page


def test_a_folder_that_cannot_be_made_is_bad_input(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert inside("man", "file/pages").returncode == 2
    command = [binary_path(), "man", str(tmp_path / "file" / "pages")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2
