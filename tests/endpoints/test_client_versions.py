"""Other versions of a library: from a registry, or from a source tree; the worker says which."""

import shutil
import subprocess
from pathlib import Path

import pytest

from cachemark.endpoints.client_versions import with_version
from cachemark.endpoints.clients import Client, parse_client, registry
from cachemark.host.process import binary_path
from cachemark.model.errors import UsageError
from tests.builders.library_trees import TREES, VERSION
from tests.workers import worker_driver


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def installed(text: str) -> Client:
    """The client of this version. Skips if its language is not set up here."""
    known = registry(binary_path())
    client = known[text.partition("@")[0]]
    if reason := client.missing():
        pytest.skip(reason)
    return with_version(parse_client(text, known), lambda _: None).client


def version_of(client: Client) -> str:
    """Which version the client's worker has loaded."""
    with worker_driver.started(client) as (_, ready):
        return ready.library_version


@pytest.fixture
def gems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry of gems with one release of dalli, and no other registry."""
    if shutil.which("gem") is None:
        pytest.skip("apt-get install ruby")
    (tmp_path / "registry" / "gems").mkdir(parents=True)
    tree = TREES["ruby/dalli"](tmp_path / "released", slow=False)
    packed = tmp_path / "registry" / "gems" / f"dalli-{VERSION}.gem"
    for folder, words in (
        (tree, ["build", "dalli.gemspec", "--output", str(packed)]),
        (tmp_path, ["generate_index", "--directory", "registry"]),
    ):
        ended = subprocess.run(["gem", *words], cwd=folder, check=False, capture_output=True)
        if b"rubygems-generate_index" in ended.stderr:
            pytest.skip("gem install rubygems-generate_index: RubyGems 3.6 is without it")
        ended.check_returncode()
    settings = tmp_path / "gemrc"
    source = (tmp_path / "registry").as_uri()
    settings.write_text(f"---\n:sources:\n- {source}/\n", encoding="utf-8")
    monkeypatch.setenv("GEMRC", str(settings))


@pytest.mark.parametrize("inside", ["", "dalli"], ids=["its root", "a folder of it"])
def test_a_gem_of_a_source_tree(inside: str, tmp_path: Path) -> None:
    """Rails keeps its gems in folders. Nothing is written into the tree."""
    tree = tmp_path / "tree"
    TREES["ruby/dalli"](tree / inside, slow=False)
    before = sorted(tree.rglob("*"))
    assert version_of(installed(f"ruby/dalli@{tree}")) == VERSION
    assert sorted(tree.rglob("*")) == before


def test_a_tree_without_the_gem(tmp_path: Path) -> None:
    TREES["ruby/dalli"](tmp_path / "tree", slow=False)
    with pytest.raises(UsageError, match=r"no activesupport\.gemspec in "):
        installed(f"ruby/mem_cache_store@{tmp_path / 'tree'}")


@pytest.mark.usefixtures("gems")
def test_a_released_gem() -> None:
    assert version_of(installed(f"ruby/dalli@{VERSION}")) == VERSION
    with pytest.raises(UsageError, match=r"cannot be installed: .*'dalli' \(= 0\.0\.1\)"):
        installed("ruby/dalli@0.0.1")


@pytest.mark.usefixtures("gems")
def test_a_gem_that_needs_what_is_nowhere(tmp_path: Path) -> None:
    tree = TREES["ruby/dalli"](tmp_path / "tree", slow=False)
    text = (tree / "dalli.gemspec").read_text(encoding="utf-8")
    needs = "  gem.add_dependency 'cachemark-of-no-registry'\nend\n"
    (tree / "dalli.gemspec").write_text(text.replace("end\n", needs), encoding="utf-8")
    with pytest.raises(UsageError, match="cachemark-of-no-registry"):
        installed(f"ruby/dalli@{tree}")


def test_a_tree_that_maven_does_not_build(tmp_path: Path) -> None:
    (tmp_path / "build.gradle").touch()
    with pytest.raises(UsageError, match=r"no pom\.xml in "):
        installed(f"java/spymemcached@{tmp_path}")


@pytest.mark.slow("Maven builds four workers")
def test_java_libraries(tmp_path: Path) -> None:
    """A release, an unknown release, a tree, and a tree with the version of the release."""
    assert version_of(installed("java/spymemcached@2.12.1")) == "2.12.1"
    with pytest.raises(UsageError, match=r"Could not .*net\.spy:spymemcached:jar:0\.0\.1"):
        installed("java/spymemcached@0.0.1")
    tree = TREES["java/spymemcached"](tmp_path / "tree", slow=False)
    before = sorted(tree.rglob("*"))
    assert version_of(installed(f"java/spymemcached@{tree}")) == VERSION
    assert sorted(tree.rglob("*")) == before
    pom = tree / "pom.xml"
    pom.write_text(pom.read_text(encoding="utf-8").replace(VERSION, "2.12.1"), encoding="utf-8")
    client = installed(f"java/spymemcached@{tree}")
    (folder,) = (Path(word).parent for word in client.command if word.endswith(".jar"))
    # The class that the tree compiles is a few hundred bytes longer than the release's.
    (used,) = (folder / "lib").glob("spymemcached-2.12.1.jar")
    released = Path.home() / ".m2/repository/net/spy/spymemcached/2.12.1" / used.name
    assert used.read_bytes() != released.read_bytes()


@pytest.mark.parametrize("where", ["~nobody-is-called-so/x", "./none", "loop/"])
def test_a_tree_that_is_none_is_refused(where: str, tmp_path: Path) -> None:
    client = Client(
        id="python/x",
        language="python",
        command=["true"],
        install_version=str(tmp_path / "install"),
    )
    spec = parse_client(f"python/x@{where}", {"python/x": client})
    with pytest.raises(UsageError, match=r"is no folder"):
        with_version(spec, lambda _: None)
