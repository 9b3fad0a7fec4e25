"""Examples for docker compose and Kubernetes: YAML whose commands the command line takes."""

import shlex
from typing import Any

import yaml

from cachemark.cli.program import app
from tests.conftest import ROOT

EXAMPLES = ROOT / "docs" / "examples"
COMPOSE, JOB = (
    yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))
    for name in ("agent-compose.yaml", "agents-job.yaml")
)


def parsed(command: list[str]) -> tuple[str, dict[str, Any]]:
    """The verb of a command line, and its arguments; an unknown option is an error."""
    assert command[0] == "cachemark"
    verb, bound, _ = app.parse_args(command[1:], exit_on_error=False, print_error=False)
    return verb.__name__, dict(bound.arguments)


def test_the_compose_file_starts_an_agent() -> None:
    (service,) = COMPOSE["services"].values()
    verb, arguments = parsed(shlex.split(service["command"]))
    assert verb == "agent"
    file = str(arguments["file"])
    _, folder, mode = service["volumes"][0].split(":")
    assert file.startswith(f"{folder}/")
    assert (mode, service["network_mode"]) == ("ro", "host")


def test_the_job_starts_an_agent_per_node_until_it_ends() -> None:
    assert (JOB["apiVersion"], JOB["kind"]) == ("batch/v1", "Job")
    spec = JOB["spec"]
    assert (spec["completionMode"], spec["backoffLimit"]) == ("Indexed", 0)
    assert spec["completions"] == spec["parallelism"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    verb, arguments = parsed(container["command"])
    assert (verb, arguments["once"]) == ("agent", True)
    # Kubernetes replaces $(NODE) by the variable of this name.
    (variable,) = container["env"]
    assert arguments["name"] == f"$({variable['name']})"
    (mount,), (volume,) = container["volumeMounts"], pod["volumes"]
    assert mount["name"] == volume["name"]
    assert str(arguments["file"]).startswith(f"{mount['mountPath']}/")
    labels = spec["template"]["metadata"]["labels"]
    rules = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert [rule["labelSelector"]["matchLabels"] for rule in rules] == [labels]
