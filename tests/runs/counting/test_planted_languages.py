"""Changed copies of a library of four languages: the rules name what was changed first.

planted.go, planted.js, planted.rb and pymemcache_planted.txt have the changes; test_planted.py has
more for Python, and looks at the counts too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from cachemark.analysis.why.report import Difference, differences
from cachemark.endpoints.clients import ClientSpec, parse_client, registry
from cachemark.host import process
from cachemark.host.system_calls import missing_reason
from cachemark.model.experiment import Keys, Load, Values, Workload
from cachemark.runs.counting.counting import CountingPlan, count

pytestmark = pytest.mark.skipif(bool(missing_reason()), reason="apt-get install strace")

HERE = Path(__file__).parent
BASE = "client/base.py"
DALLI = {
    "a connection": "connection per call",
    "another request": "more round trips",
    "another thread": "thread hand-over",
    "two writes": "request in parts",
    "a read for each byte": "reply in parts",
    "options": "options per call",
    "garbage": "garbage",
    "a file": "files",
    "single gets": "single gets",
    "polls": "poll before each read",
    "a pipe": "wake-ups",
    "a timer": "timer per call",
    "a page": "fresh memory",
    "Nagle": "nagle",
}
GOMEMCACHE = {
    "a connection": "connection per call",
    "another thread": "thread hand-over",
    "polls": "poll before each read",
    "a timer": "timer per call",
    "a pipe": "wake-ups",
    "a page": "fresh memory",
    "Nagle": "nagle",
    "two writes": "request in parts",
    "a read for each byte": "reply in parts",
    "options": "options per call",
    "garbage": "garbage",
    "a copy": "copies",
    "single gets": "single gets",
}
# It has no read of many keys, and Node.js itself polls and reads.
MEMJS = {
    "a connection": "connection per call",
    "another request": "more round trips",
    "two writes": "request in parts",
    "options": "options per call",
    "a file": "files",
    "Nagle": "nagle",
}
PYMEMCACHE = {
    "small reads": "reply in parts",
    "single gets": "single gets",
    "a timer": "timer per call",
    "a pipe": "wake-ups",
    "a page": "fresh memory",
    "Nagle": "nagle",
}
CAUSES = {"go": GOMEMCACHE, "node": MEMJS, "python": PYMEMCACHE, "ruby": DALLI}
CLIENTS = {
    "go": "go/gomemcache",
    "node": "node/memjs",
    "python": "python/pymemcache",
    "ruby": "ruby/dalli",
}
# The first in the order of the rules are clear in one repetition.
QUICK = {"go": "a connection", "node": "another request", "ruby": "two writes"}
# Each operation waits for 40 ms.
SLOW = "Nagle"


def original(language: str) -> ClientSpec:
    spec = parse_client(CLIENTS[language], registry(process.binary_path()))
    if missing := spec.client.missing():
        pytest.skip(missing)
    return spec


def output_of(command: Sequence[str], folder: Path | None = None) -> str:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


def copied(tree: str, into: Path, changes: dict[str, dict[str, str]]) -> None:
    """Copy a library, and replace in each file what must be there once."""
    shutil.copytree(tree, into, copy_function=shutil.copyfile)
    for name, changed in changes.items():
        file = into / name
        text = file.read_text()
        for before, after in changed.items():
            assert text.count(before) == 1, before
            text = text.replace(before, after)
        file.write_text(text)


def changed_go(spec: ClientSpec, folder: Path) -> list[str]:
    """The command of a worker with a changed gomemcache."""
    module, workers = "github.com/bradfitz/gomemcache", Path(spec.client.needs).parent
    tree = folder / "gomemcache"
    listed = ["go", "list", "-m", "-f", "{{.Dir}}", module]
    changes = {
        "\tcn = &conn{\n": "\tnc = plant(nc)\n\tcn = &conn{\n",
        "\tif *err == nil || ": '\tif planted != "a connection" && *err == nil || ',
        "\t\tcb(it)\n": '\t\tif planted == "a copy" {\n'
        "\t\t\tit.Value = append([]byte(nil), it.Value...)\n\t\t}\n\t\tcb(it)\n",
        "\tvar mu sync.Mutex\n": '\tif planted == "single gets" {\n'
        "\t\treturn c.oneByOne(keys)\n\t}\n\tvar mu sync.Mutex\n",
    }
    copied(output_of(listed, workers), tree, {"memcache/memcache.go": changes})
    shutil.copyfile(HERE / "planted.go", tree / "memcache" / "planted.go")
    built = [str(workers / "install_version"), str(folder / "worker"), "go", module, str(tree)]
    subprocess.run(built, check=True, env={**os.environ, "GOPROXY": "off"})
    return [str(folder / "worker" / "worker"), "gomemcache"]


def changed_node(spec: ClientSpec, folder: Path) -> list[str]:
    """The command of a worker with a changed memjs."""
    worker = Path(spec.client.folder)
    sends = "    s.write(blob);\n    self.requestTimeouts"
    changes = {sends: sends.replace("s.write(blob)", "require('./planted')(self, s, blob)")}
    changed = "node_modules/memjs/lib/memjs"
    copied(str(worker), folder / "node", {f"{changed}/server.js": changes})
    shutil.copyfile(HERE / "planted.js", folder / "node" / changed / "planted.js")
    return [part.replace(str(worker), str(folder / "node")) for part in spec.client.command]


def changed_ruby(spec: ClientSpec, folder: Path) -> list[str]:
    """The command of a worker with a changed dalli."""
    found = ["ruby", "-e", "puts Gem::Specification.find_by_name('dalli').full_gem_path"]
    tree = folder / "dalli"
    one_by_one = "return keys.to_h { |key| [key, get(key)] } if Planted::NAME == 'single gets'"
    changes = {"      keys.compact!\n": f"      keys.compact!\n      {one_by_one}\n"}
    copied(output_of(found), tree, {"lib/dalli/client.rb": changes})
    with (tree / "lib" / "dalli" / "socket.rb").open("a") as socket:
        socket.write((HERE / "planted.rb").read_text())
    return ["env", f"CACHEMARK_GEM_DALLI={tree}", *spec.client.command]


def changed_python(spec: ClientSpec, folder: Path) -> list[str]:
    """The command of a worker with a changed pymemcache."""
    where = "import os, pymemcache; print(os.path.dirname(pymemcache.__file__))"
    many = 'self._fetch_cmd(b"get", keys, False, key_prefix=self.key_prefix)\n'
    changes = {
        "return sock.recv(size)\n": "return planted_recv(sock, size)\n",
        f"return {many}": f"return planted_get_many(self, keys) or {many}",
    }
    copied(output_of([spec.client.needs, "-c", where]), folder / "pymemcache", {BASE: changes})
    file = folder / "pymemcache" / BASE
    text, calls = re.subn(r"self\.sock\.sendall\(", "planted_send(self.sock, ", file.read_text())
    assert calls >= 2
    file.write_text(text + (HERE / "pymemcache_planted.txt").read_text())
    return ["env", f"PYTHONPATH={folder}", *spec.client.command]


CHANGED: dict[str, Callable[[ClientSpec, Path], list[str]]] = {
    "go": changed_go,
    "node": changed_node,
    "python": changed_python,
    "ruby": changed_ruby,
}


def planted(spec: ClientSpec, command: Sequence[str], name: str) -> ClientSpec:
    client = msgspec.structs.replace(spec.client, command=["env", f"PLANTED={name}", *command])
    return ClientSpec(text=name or "the same again", client=client, version="")


def counted(kind: str, clients: list[ClientSpec], repeat: int) -> dict[str, Difference]:
    """How the other clients differ from the first one, by name."""
    plan = CountingPlan(
        clients=clients,
        workload=Workload(
            name=kind,
            mix={kind: 1},
            keys=Keys(count=50, length="20"),
            values=Values(size="100"),
            run=10,
        ),
        load=Load(name="one-caller"),
        repeat=repeat,
    )
    found = count(plan, process.binary_path(), lambda _: None)
    assert not [each.failure for each in found.works if each.failure]
    return {each.client: each for each in differences(found.works, found.unit_costs)}


def first_causes(found: dict[str, Difference]) -> dict[str, str]:
    return {name: each.findings[0].cause if each.findings else "" for name, each in found.items()}


@pytest.mark.parametrize("language", QUICK)
def test_a_planted_cause_is_named_first(language: str, tmp_path: Path) -> None:
    spec, name = original(language), QUICK[language]
    command = CHANGED[language](spec, tmp_path)
    found = counted("get", [spec, planted(spec, command, name)], 1)
    assert first_causes(found) == {name: CAUSES[language][name]}


@pytest.mark.slow("counts a dozen copies of a library three times")
@pytest.mark.parametrize("language", CAUSES)
def test_all_planted_causes_are_named_first(language: str, tmp_path: Path) -> None:
    spec, causes = original(language), CAUSES[language]
    command = CHANGED[language](spec, tmp_path)
    copies = {name: planted(spec, command, name) for name in ["", *causes]}
    singles, slow = copies.pop("single gets", None), copies.pop(SLOW)
    found = counted("get", [spec, *copies.values()], 3)
    unchanged = found.pop("the same again")
    assert (unchanged.findings, unchanged.findings_of_base) == ([], [])
    found |= counted("get", [spec, slow], 1)
    found |= counted("mget", [spec, singles], 3) if singles else {}
    assert first_causes(found) == causes
