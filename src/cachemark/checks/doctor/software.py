"""Checks of what is installed: the engine, servers, and each language's workers."""

import contextlib
import platform
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from cachemark import __version__
from cachemark.endpoints.clients import Client, registry
from cachemark.endpoints.servers import memcached
from cachemark.host.binaries import of_file
from cachemark.host.process import ENGINE, ENGINE_REMEDY, binary_path
from cachemark.model.errors import UsageError
from cachemark.model.machine_limits import NOT_READABLE, Check, info_check
from cachemark.model.run_header import HostFacts


def software(facts: HostFacts) -> list[Check]:
    """The versions of all programs, and which are missing."""
    others = [f"{name}: {text}" for name, text in facts.tools.items() if name != "memcached"]
    return [
        info_check("cachemark", f"{__version__}, Python {platform.python_version()}"),
        engine(facts.engine),
        _memcached(facts.tools.get("memcached", "")),
        _setpriv(),
        _hashes(),
        info_check("tools", "; ".join(others) or "none"),
        *_workers(),
    ]


def engine(version: str) -> Check:
    """The engine must be installed and have the same version as cachemark."""
    # Behind the version is the commit: a change of cachemark alone does not build the engine again.
    same = version.split()[:2] == [ENGINE, __version__]
    return Check(
        name="engine",
        value=version or "not installed",
        status="ok" if same else "fail",
        limits=f"fail unless {ENGINE} {__version__}",
        remedy="" if same else ENGINE_REMEDY,
    )


def _memcached(version: str) -> Check:
    return Check(
        name="memcached",
        value=version or "not on PATH",
        status="ok" if version else "warn",
        limits="warn when missing",
        remedy="" if version else memcached.REMEDY,
    )


def _hashes() -> Check:
    """The hashes of programs that the outcome of each trial stores."""
    files = {"python": sys.executable, "memcached": shutil.which("memcached") or ""}
    with contextlib.suppress(UsageError):
        files[ENGINE] = binary_path()
    binaries = {name: of_file(name, Path(path), path) for name, path in files.items() if path}
    unread = [files[name] for name, binary in binaries.items() if binary is None]
    return Check(
        name="binaries",
        value="; ".join(f"{name} {of.sha256[:12]}" for name, of in binaries.items() if of)
        or NOT_READABLE,
        status="warn" if unread else "ok",
        limits="warn if one cannot be read: runs with different builds would look the same",
        remedy=f"chmod a+r {' '.join(unread)}" if unread else "",
    )


def _setpriv() -> Check:
    """Without this program, a server keeps running if cachemark is killed."""
    path = shutil.which("setpriv")
    return Check(
        name="setpriv",
        value=path or "not on PATH",
        status="ok" if path else "warn",
        limits="warn if missing: servers keep running if cachemark is killed",
        remedy="" if path else "apt-get install util-linux",
    )


def _workers() -> list[Check]:
    try:
        known = registry(binary_path())
    except UsageError as error:
        return [
            Check(
                name="workers",
                value=error.text,
                status="fail",
                limits="fail when unknown",
                remedy=error.remedy,
            )
        ]
    return workers(known.values())


def workers(clients: Iterable[Client]) -> list[Check]:
    """One check for each language: how many of its clients can be started."""
    by_language: dict[str, list[Client]] = {}
    for client in clients:
        by_language.setdefault(client.language, []).append(client)
    return [
        _language(language, of_language) for language, of_language in sorted(by_language.items())
    ]


def _language(language: str, clients: list[Client]) -> Check:
    missing = [client for client in clients if client.missing()]
    ready = len(clients) - len(missing)
    remedies = dict.fromkeys(client.setup for client in missing if client.setup)
    return Check(
        name=f"{language} clients",
        value=f"{ready} of {len(clients)} ready",
        status="info" if missing else "ok",
        limits="ok if all can be started",
        remedy="; ".join(remedies),
    )
