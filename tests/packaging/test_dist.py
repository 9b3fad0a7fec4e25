"""`make dist`: the same commit gives the same bytes, and what is installed of them works alone."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from cachemark import __version__
from cachemark.host.process import binary_path
from cachemark.web.settings import WebSettings
from tests.conftest import ROOT
from tests.web.serving import Visitor
from tools import dist

RUN = ["run", "quick", "--client", "native", "--server", "embedded", "--blocks", "1"]


def in_a_repository() -> bool:
    """Whether git can read this checkout."""
    command = ["git", "rev-parse", "--verify", "--quiet", "HEAD"]
    return (
        shutil.which("git") is not None
        and subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0
    )


pytestmark = [
    pytest.mark.slow("builds a wheel and an sdist, twice"),
    pytest.mark.skipif(not in_a_repository(), reason="packages are built of a commit"),
]


def built(folder: Path) -> dict[str, bytes]:
    """The packages without the engine, built of an export in a folder of its own."""
    out, sources = folder / "out", folder / "sources"
    sources.mkdir(parents=True)
    dist.export(sources)
    dist.build_site(sources)
    for kind in ("--sdist", "--wheel"):
        dist.build(sources, kind, out)
    return {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the packages, after a second build has shown that they are reproducible."""
    folder = tmp_path_factory.mktemp("dist")
    first = built(folder / "first")
    assert sorted(first) == [
        f"cachemark-{__version__}-py3-none-any.whl",
        f"cachemark-{__version__}.tar.gz",
    ]
    assert built(folder / "second of another length") == first
    return folder / "first" / "out"


def wheel(packages: Path) -> Path:
    (found,) = packages.glob("*.whl")
    return found


def test_packages_know_their_commit(packages: Path) -> None:
    commit = dist.git("rev-parse", "HEAD").decode()
    with zipfile.ZipFile(wheel(packages)) as files:
        assert files.read("cachemark/commit.txt").decode() == commit
    (sdist,) = packages.glob("*.tar.gz")
    with tarfile.open(sdist) as files:
        file = files.extractfile(f"{sdist.name.removesuffix('.tar.gz')}/src/cachemark/commit.txt")
        assert file is not None
        assert file.read().decode() == commit


def test_a_wheel_needs_the_engine_of_its_version_on_linux(packages: Path) -> None:
    with zipfile.ZipFile(wheel(packages)) as files:
        metadata = files.read(f"cachemark-{__version__}.dist-info/METADATA").decode().splitlines()
    needed = f"Requires-Dist: cachemark-engine=={__version__}; sys_platform == 'linux'"
    assert needed in metadata
    # The rest of the list comes from pyproject.toml.
    assert any(line.startswith("Requires-Dist: cyclopts") for line in metadata)


def test_packages_have_the_documentation(packages: Path, tmp_path: Path) -> None:
    """A wheel that is built of the sdist too: the sdist has the built pages."""
    with zipfile.ZipFile(wheel(packages)) as files:
        names = files.namelist()
        page = files.read("cachemark/_site/html/tutorial.html").decode()
    assert "The first answer" in page
    (sdist,) = packages.glob("*.tar.gz")
    shutil.unpack_archive(sdist, tmp_path)
    dist.build(tmp_path / sdist.name.removesuffix(".tar.gz"), "--wheel", tmp_path)
    with zipfile.ZipFile(wheel(tmp_path)) as files:
        assert [name for name in names if name not in files.namelist()] == []


def test_checksums_are_what_sha256sum_reads(packages: Path, tmp_path: Path) -> None:
    shutil.copy(wheel(packages), tmp_path)
    assert dist.write_checksums(tmp_path) == [tmp_path / wheel(packages).name]
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    subprocess.run(command, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)


def documentation(environment: Path, folder: Path) -> str:
    """A page of the documentation, from the pages of an installed cachemark."""
    command = [environment / "bin" / "python", "-B", "-m", "cachemark", "web", "--port", "0"]
    given = {"PATH": os.defpath, "HOME": str(folder)}
    with subprocess.Popen(
        command, cwd=folder, env=given, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            found = re.search(r"shown at (\S+)/;", server.stdout.readline())
            assert found
            return Visitor(found[1], WebSettings(root=folder)).get("/docs/tutorial.html").text
        finally:
            server.terminate()


def test_an_installed_wheel_needs_no_checkout(packages: Path, tmp_path: Path) -> None:
    """Its dependencies come from this environment; the engine is the built one."""
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = environment / "lib" / version / "site-packages"
    with zipfile.ZipFile(wheel(packages)) as files:
        for member in files.infolist():
            target = Path(files.extract(member, site))
            target.chmod((member.external_attr >> 16) & 0o777)
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    before = sorted(site.rglob("*"))
    home = tmp_path / "home"
    said = [
        subprocess.run(
            [environment / "bin" / "python", "-B", "-m", "cachemark", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": os.defpath, "HOME": str(home), "CACHEMARK_ENGINE": binary_path()},
        )
        for words in (["--version"], ["suites"], ["setup", "perl"], RUN, ["report"])
    ]
    assert re.fullmatch(
        rf"cachemark {re.escape(__version__)} \(\w{{12}}, package; Python [\d.]+\S*\)\n",
        said[0].stdout,
    )
    assert said[1].stdout.startswith("suite")
    # Perl's set-up builds nothing; whether Perl's libraries are there does not matter here.
    assert re.match(r"(ready|missing) +perl ", said[2].stdout), said[2]
    assert said[3].returncode == 0, said[3]
    assert "native" in said[4].stdout
    assert "The first answer" in documentation(environment, tmp_path)
    (workers,) = (home / ".cache" / "cachemark" / "workers").iterdir()
    assert (workers / "perl" / "worker.toml").is_file()
    assert sorted(site.rglob("*")) == before
