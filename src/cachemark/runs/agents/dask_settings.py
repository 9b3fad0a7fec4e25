"""Dask's settings: no second tries, no endless waits, no other services."""

import importlib.util
import logging
import tomllib
from pathlib import Path

from cachemark.model.errors import UsageError

# A host that cannot be reached for this time is lost.
LOST_AFTER_S = 12
RESOURCE = "AGENT"
# Dask serves a page about its state here, until the page is switched off.
NOWHERE = "127.0.0.1:0"


def check_installed() -> None:
    """Raise UsageError if the packages of runs over hosts are not installed."""
    for package in ("distributed", "cryptography"):
        if importlib.util.find_spec(package) is None:
            raise UsageError(
                f"runs over hosts need the package {package}, which is not installed",
                "install it on every host: pip install 'cachemark[fleet]'",
            )


def configure() -> None:
    """Set up Dask in this process, before any of its servers start."""
    from dask import config  # noqa: PLC0415  # it takes half a second, and needs the extra packages

    settings = Path(__file__).with_name("dask.toml").read_text(encoding="utf-8")
    ends = ("distributed.scheduler.worker-ttl", "distributed.comm.timeouts.tcp")
    config.set({**tomllib.loads(settings), **dict.fromkeys(ends, f"{LOST_AFTER_S}s")})
    # Answers carry the errors; Dask's log would stand between the lines of the display.
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
