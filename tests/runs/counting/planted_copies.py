"""Changed copies of one library of each language, and the causes that they have.

The files `planted*` and Planted.java have the changes: PLANTED, in the environment, names one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from cachemark.endpoints.clients import ClientSpec, parse_client, registry
from cachemark.host import process

HERE = Path(__file__).parent
BASE = "client/base.py"
CLIENTS = {
    "c": "c/libmemcached",
    "go": "go/gomemcache",
    "java": "java/spymemcached",
    "node": "node/memjs",
    "perl": "perl/memcached",
    "python": "python/pymemcache",
    "ruby": "ruby/dalli",
}


class Change(NamedTuple):
    """The rule that names a change, and the languages whose copies have it."""

    cause: str
    languages: str


# Absent are: what counters cannot tell (Node.js itself polls and reads, Java sleeps in a futex, few
# runtimes count allocations), what a language or its library lacks (threads in Perl, timers in
# Java, reads of many keys in memjs), and longer requests on a binary wire.
CHANGES = {
    "Nagle": Change("nagle", "c go java node perl python ruby"),
    "a connection": Change("connection per call", "c go java node perl python ruby"),
    "single gets": Change("single gets", "go perl python ruby"),
    "another request": Change("more round trips", "c go java node perl python ruby"),
    "another thread": Change("thread hand-over", "c go java python ruby"),
    "two writes": Change("request in parts", "c go java node perl python ruby"),
    "small reads": Change("reply in parts", "c go java perl python ruby"),
    "an empty read": Change("empty reads", "c go java node perl python ruby"),
    "polls": Change("poll before each read", "c go java perl python ruby"),
    "a timer": Change("timer per call", "c go perl python ruby"),
    "options": Change("options per call", "c go java node perl python ruby"),
    "a lock": Change("locks", "c go java node python ruby"),
    "a pipe": Change("wake-ups", "c go java perl python ruby"),
    "a sleep": Change("waits", "c go perl python ruby"),
    "a copy": Change("copies", "c go java"),
    "garbage": Change("garbage", "c go ruby"),
    "a large buffer": Change("large garbage", "c go java"),
    "a collection": Change("collections", "ruby"),
    "a file": Change("files", "c go java node perl python ruby"),
    "a page": Change("fresh memory", "c go python ruby"),
    "a fault": Change("page faults", "c go python ruby"),
    "other calls": Change("other calls", "c go node perl python ruby"),
    "a longer request": Change("longer requests", "c go perl python"),
}


def causes_of(language: str) -> dict[str, str]:
    """The changes that copies of a language have, and the rule that names each."""
    return {
        name: each.cause for name, each in CHANGES.items() if language in each.languages.split()
    }


def original(language: str) -> ClientSpec:
    spec = parse_client(CLIENTS[language], registry(process.binary_path()))
    if missing := spec.client.missing():
        pytest.skip(missing)
    return spec


def planted(spec: ClientSpec, command: Sequence[str], name: str) -> ClientSpec:
    client = msgspec.structs.replace(spec.client, command=["env", f"PLANTED={name}", *command])
    return ClientSpec(text=name or "the same again", client=client, version="")


def output_of(command: Sequence[str], folder: Path | None = None) -> str:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


def copied(tree: str, into: Path, changes: dict[str, dict[str, str]]) -> None:
    """Copy a library, and change files of it."""
    shutil.copytree(tree, into, copy_function=shutil.copyfile)
    for name, changed in changes.items():
        change(into / name, changed)


def change(file: Path, changes: dict[str, str]) -> None:
    """Replace what must be there once."""
    text = file.read_text()
    for before, after in changes.items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    file.write_text(text)


def changed_c(spec: ClientSpec, folder: Path) -> list[str]:
    """The command of a worker whose libmemcached finds other system calls."""
    library = folder / "planted.so"
    built = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(HERE / "planted.c")]
    output_of([*built, "-ldl", "-lpthread"])
    preloaded = f'LD_PRELOAD="$LD_PRELOAD {library}" exec "$0" "$@"'
    return ["sh", "-c", preloaded, *spec.client.command]


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


def changed_java(spec: ClientSpec, folder: Path) -> list[str]:
    """The command of a worker that changes spymemcached as it loads it."""
    module = "jdk.internal.org.objectweb.asm"
    if module not in output_of(["java", "--describe-module", "java.base"]):
        pytest.skip(f"{module} is not on this machine")
    export = ["--add-exports", f"java.base/{module}=ALL-UNNAMED"]
    output_of(["javac", *export, "-d", str(folder / "classes"), str(HERE / "Planted.java")])
    manifest, agent = folder / "manifest", folder / "planted.jar"
    manifest.write_text("Premain-Class: Planted\n")
    output_of(["jar", "cfm", str(agent), str(manifest), "-C", str(folder / "classes"), "."])
    java, *others = spec.client.command
    return [java, *export, f"-javaagent:{agent}", *others]


def changed_node(spec: ClientSpec, folder: Path) -> list[str]:
    """The command of a worker with a changed memjs."""
    worker = Path(spec.client.folder)
    sends = "    s.write(blob);\n    self.requestTimeouts"
    changes = {sends: sends.replace("s.write(blob)", "require('./planted')(self, s, blob)")}
    changed = "node_modules/memjs/lib/memjs"
    copied(str(worker), folder / "node", {f"{changed}/server.js": changes})
    shutil.copyfile(HERE / "planted.js", folder / "node" / changed / "planted.js")
    return [part.replace(str(worker), str(folder / "node")) for part in spec.client.command]


def changed_perl(spec: ClientSpec, folder: Path) -> list[str]:
    """The command of a worker with a changed Cache::Memcached."""
    shown = ["perl", "-MCache::Memcached", "-e", 'print $INC{"Cache/Memcached.pm"}']
    library, tree = Path(output_of(shown)), folder / "Cache"
    many = "    my Cache::Memcached $self = shift;\n    return {} unless $self->{'active'};\n"
    singles = "return { map { $_ => $self->get($_) } @_ }"
    reads = {
        f"sysread($sock, {into}": f"Planted::reads($sock, {into}"
        for into in ("$ret->{$self->[KEY]}", "$self->[BUF]")
    }
    copied(str(library.with_suffix("")), tree / "Memcached", {"GetParser.pm": reads})
    shutil.copyfile(library, tree / library.name)
    changes = {
        "package Cache::Memcached;\n": "package Cache::Memcached;\nuse Planted;\n",
        "$res = send($sock, $buf{": "$res = Planted::sends($sock, $buf{",
        many: f"{many}    {singles} if $Planted::NAME eq 'single gets' && @_ > 1;\n",
    }
    change(tree / library.name, changes)
    shutil.copyfile(HERE / "planted.pm", folder / "Planted.pm")
    return ["env", f"PERL5LIB={folder}", *spec.client.command]


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
    file.write_text(text + (HERE / "planted_python.txt").read_text())
    return ["env", f"PYTHONPATH={folder}", *spec.client.command]


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


CHANGED: dict[str, Callable[[ClientSpec, Path], list[str]]] = {
    "c": changed_c,
    "go": changed_go,
    "java": changed_java,
    "node": changed_node,
    "perl": changed_perl,
    "python": changed_python,
    "ruby": changed_ruby,
}
