"""Install the packages of dist/ into a clean environment, and use them as their user would.

The environment has no checkout and, once the packages are installed, no Rust toolchain on PATH.
Only PHP's set-up gets one, if both are on this machine: it builds the shared store.
`--sdist` installs the sdists instead of the wheels. For this a Rust toolchain has to be on PATH.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The programs of the system: on most machines memcached, and no Rust toolchain.
_SYSTEM_PATH = "/usr/bin:/bin"
# How this machine reaches the package registries.
_NETWORK = ("http_proxy", "https_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir")
_RUN = ("--server", "embedded", "--blocks", "1", "--max", "20s")
_COMMANDS = (
    ("cachemark", "--version"),
    ("cachemark-engine", "--version"),
    ("cachemark", "run", "quick", "--client", "native", *_RUN),
    ("cachemark", "report"),
    ("cachemark", "setup", "python"),
    ("cachemark", "run", "quick", "--client", "native", "--client", "python/pymemcache", *_RUN),
    ("cachemark", "report"),
    ("cachemark", "man", "man1"),
    ("cachemark", "completion", "bash"),
)
# The machine may be unfit for measurements: then the exit status is 1.
_DOCTOR = ("cachemark", "doctor")
_SETUP_PHP = ("cachemark", "setup", "php")
_WEB = ("cachemark", "web", "--port", "0")
_EXTRAS = "web,fleet"


def main(arguments: list[str] | None = None) -> int:
    """Install and try; 1 if a command fails, or if one changed the installed packages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sdist", action="store_true", help="install the sdists")
    kind = "*.tar.gz" if parser.parse_args(arguments).sdist else "*.whl"
    packages = for_machine((ROOT / "dist").glob(kind), platform.machine())
    if len(packages) != 2:
        print("try: dist/ has not both packages: run `make dist`", file=sys.stderr)
        return 1
    rest, engine = map(str, packages)
    with tempfile.TemporaryDirectory() as folder:
        return _try(Path(folder), [f"{rest}[{_EXTRAS}]", engine])


def for_machine(packages: Iterable[Path], machine: str) -> list[Path]:
    """The package without the engine, then the engine's: of its wheels that of a processor."""
    usable = [
        path
        for path in packages
        if path.suffix != ".whl" or path.stem.endswith(("-any", f"_{machine}"))
    ]
    return sorted(usable, key=lambda path: "_engine" in path.name)


def _try(folder: Path, packages: list[str]) -> int:
    programs = folder / "environment" / "bin"
    clean = {
        **{name: value for name, value in os.environ.items() if name.lower() in _NETWORK},
        **{"HOME": str(folder), "PATH": f"{programs}:{_SYSTEM_PATH}", "LANG": "C.UTF-8"},
    }
    with_compilers = {**os.environ, "VIRTUAL_ENV": ""}
    install = (str(programs / "pip"), "install", "--quiet", "--disable-pip-version-check")
    _run((sys.executable, "-m", "venv", str(programs.parent)), folder, with_compilers)
    _run((*install, *packages, "uv"), folder, with_compilers)
    before = _files(programs.parent)
    for command in _COMMANDS:
        _run(command, folder, clean)
    _run(_DOCTOR, folder, clean, allowed=(0, 1))
    _serve_pages(folder, clean)
    if shutil.which("php", path=_SYSTEM_PATH) and shutil.which("cargo"):
        cargo = {"CARGO_HOME": str(_cargo_home()), "RUSTUP_HOME": str(_rustup_home())}
        path = f"{clean['PATH']}:{os.environ['PATH']}"
        _run(_SETUP_PHP, folder, {**clean, **cargo, "PATH": path})
        if not list(folder.glob(".cache/cachemark/workers/*/php/target/libcachemark_store.so")):
            print("try: PHP's shared store was not built", file=sys.stderr)
            return 1
    if changed := _files(programs.parent) ^ before:
        print(f"try: the installed packages changed: {sorted(changed)[:5]}", file=sys.stderr)
        return 1
    return 0


def _cargo_home() -> Path:
    return Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))


def _rustup_home() -> Path:
    return Path(os.environ.get("RUSTUP_HOME", Path.home() / ".rustup"))


def _serve_pages(folder: Path, environment: Mapping[str, str]) -> None:
    """Start `cachemark web`, and read the page of all runs, and the documentation's first.

    Ends this program if there is none.
    """
    print(f"$ {' '.join(_WEB)}", flush=True)
    with subprocess.Popen(
        _WEB, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        announced = server.stdout.readline()
        address = next((word for word in announced.split() if word.startswith("http://")), "")
        try:
            page = _page(address.rstrip(";"))
            documentation = _page(f"{address.rstrip(';')}docs/tutorial.html")
        finally:
            server.terminate()
    print(f"  [{announced.strip()}; {len(page)} + {len(documentation)} bytes]", flush=True)
    for text, what in ((page, "quick"), (documentation, "The first answer")):
        if what.encode() not in text:
            print(f"try: a page of `cachemark web` has no {what!r}", file=sys.stderr)
            raise SystemExit(1)


def _page(address: str) -> bytes:
    """A page of this machine, whatever proxy the environment names."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(address, timeout=30) as answer:
        return answer.read()


def _files(folder: Path) -> set[Path]:
    """The files of an environment, without the bytecode that Python keeps."""
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


def _run(
    command: tuple[str, ...],
    folder: Path,
    environment: Mapping[str, str],
    allowed: tuple[int, ...] = (0,),
) -> None:
    """Run a command, and show it as a transcript does. Ends this program if the command fails."""
    print(f"$ {' '.join(command)}", flush=True)
    began = time.monotonic()
    ended = subprocess.run(command, cwd=folder, env=environment, check=False)
    print(f"  [status {ended.returncode}, {time.monotonic() - began:.1f} s]", flush=True)
    if ended.returncode not in allowed:
        raise SystemExit(1)


if __name__ == "__main__":
    sys.exit(main())
