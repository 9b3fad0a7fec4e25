"""Checks of the installed programs: the engine, servers, and each language's workers."""

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
from cachemark.model.machine_limits import NOT_READABLE, Check, info_check, judged_check
from cachemark.model.run_header import HostFacts


def software(facts: HostFacts) -> list[Check]:
    """The versions of all programs, and the missing ones."""
    others = [f"{name}: {text}" for name, text in facts.tools.items() if name != "memcached"]
    return [
        info_check("cachemark", f"{__version__}, Python {platform.python_version()}"),
        engine(facts.engine),
        _installed(
            "memcached", facts.tools.get("memcached", ""), "warn when missing", memcached.REMEDY
        ),
        _setpriv(),
        _hashes(),
        info_check("tools", "; ".join(others) or "none"),
        *_workers(),
    ]


def engine(version: str) -> Check:
    """The engine must be installed and have the same version as cachemark."""
    # Behind the version is the commit: a change of cachemark alone does not build the engine again.
    same = version.split()[:2] == [ENGINE, __version__]
    value, limits = version or "not installed", f"fail unless {ENGINE} {__version__}"
    return judged_check("engine", value, limits, ENGINE_REMEDY, "ok" if same else "fail")


def _installed(name: str, found: str, limits: str, remedy: str) -> Check:
    """Whether a program was found: its path or its version; empty if it was not."""
    return judged_check(name, found or "not on PATH", limits, remedy, "ok" if found else "warn")


def _hashes() -> Check:
    """The hashes of programs that the outcome of each trial stores."""
    files = {"python": sys.executable, "memcached": shutil.which("memcached") or ""}
    with contextlib.suppress(UsageError):
        files[ENGINE] = binary_path()
    binaries = {name: of_file(name, Path(path), path) for name, path in files.items() if path}
    unread = [files[name] for name, binary in binaries.items() if binary is None]
    return judged_check(
        "binaries",
        "; ".join(f"{name} {of.sha256[:12]}" for name, of in binaries.items() if of)
        or NOT_READABLE,
        "warn if one cannot be read: runs with different builds would look the same",
        f"chmod a+r {' '.join(unread)}",
        "warn" if unread else "ok",
    )


def _setpriv() -> Check:
    """Without this program, a server keeps running if cachemark is killed."""
    limits = "warn if missing: servers keep running if cachemark is killed"
    path = shutil.which("setpriv") or ""
    return _installed("setpriv", path, limits, "apt-get install util-linux")


def _workers() -> list[Check]:
    try:
        known = registry(binary_path())
    except UsageError as error:
        return [judged_check("workers", error.text, "fail when unknown", error.remedy, "fail")]
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
