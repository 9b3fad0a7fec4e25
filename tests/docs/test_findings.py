"""Findings about clients name functions that the libraries of today still have."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.test_data import rows

# Only the compiled libraries of these are here.
COMPILED = ("c/", "php/", "perl/fast")
FINDINGS = [row for row in rows("why-findings-2026-11") if not row["client"].startswith(COMPILED)]
WORKERS = ROOT / "workers"
GEMS = {"dalli": "dalli", "mem_cache_store": "activesupport"}
MODULES = {"gomemcache": "bradfitz", "gomemcache-grafana": "grafana"}
JARS = {"elasticache": "elasticache-java-cluster-client"}


def said(*command: str) -> str:
    """What a program of a language says; empty if it is not installed, or fails."""
    if not shutil.which(command[0]):
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def folders(language: str, library: str, version: str) -> list[Path]:
    """Where the library's sources may be on this machine."""
    modules = WORKERS / "node" / "node_modules"
    installed = {
        "python": [*(WORKERS / "python" / ".venv" / "lib").glob("python3*/site-packages")],
        "node": [modules / library, modules],
        "perl": [Path(of) for of in said("perl", "-e", 'print join ":", @INC').split(":")],
    }
    if language in installed:
        return installed[language]
    if language == "rust":
        sources = Path.home() / ".cargo" / "registry" / "src"
        return [*sources.glob(f"*/{library}-{version}")]
    if language == "go" and (cache := said("go", "env", "GOMODCACHE")):
        return [Path(cache) / "github.com" / MODULES[library] / f"gomemcache@{version}"]
    if language == "ruby":
        asked = f"puts Gem::Specification.find_by_name('{GEMS[library]}').full_gem_path"
        found = said("ruby", "-e", asked)
        return [Path(found)] if found.endswith(f"-{version.partition(' ')[0]}") else []
    return []


def source(client: str, version: str, file: str) -> bytes:
    """A source file, or a class with the names of its methods; empty if it is not here."""
    language, library = client.split("/")
    if language == "java":
        jars = (WORKERS / "java" / "target" / "lib").glob(
            f"{JARS.get(library, library)}-{version}.jar"
        )
        wanted = f"/{file.removesuffix('.java')}.class"
        return b"".join(
            opened.read(name)
            for opened in map(zipfile.ZipFile, jars)
            for name in opened.namelist()
            if name.endswith(wanted)
        )
    found = [folder / file for folder in folders(language, library, version)]
    return b"".join(path.read_bytes() for path in found if path.exists())


@pytest.mark.parametrize("number", range(len(FINDINGS)))
def test_a_finding_names_functions_that_its_library_has(number: int) -> None:
    row = FINDINGS[number]
    places = [place.split(": ") for place in row["place"].split("; ")]
    texts = [source(row["client"], row["version"], file) for file, _ in places]
    if not any(texts):
        pytest.skip(f"the sources of {row['client']} {row['version']} are not on this machine")
    for text, (file, named) in zip(texts, places, strict=True):
        assert text, f"{file} is not in {row['client']} {row['version']}"
        for name in named.split(", "):
            function = re.split(r"::|\.", name)[-1]
            assert re.search(rb"\b%s\b" % function.encode(), text), f"{file} has no {name}"


@pytest.mark.parametrize("row", rows("why-findings-2026-11"), ids=lambda row: row["client"])
def test_a_findings_link_shows_the_line_of_its_function(row: dict[str, str]) -> None:
    path, _, line = row["source"].partition("#L")
    assert not re.search(r"/blob/(main|master|v1\.x)/", path)
    places = dict(place.split(": ") for place in row["place"].split("; "))
    (file,) = [of for of in places if Path(of).stem == Path(path).stem]
    function = re.split(r"::|\.", places[file].split(", ")[0])[-1]
    if row in FINDINGS and file.endswith(Path(path).suffix) and ".java" not in file:
        text = source(row["client"], row["version"], file)
        assert not text or function.encode() in text.splitlines()[int(line) - 1]
