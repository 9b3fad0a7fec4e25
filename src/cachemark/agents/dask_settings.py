"""How Dask is set up: nothing is tried twice, nothing waits for ever, nothing else runs."""

import importlib.util
import logging

from cachemark.model.errors import UsageError

# A host that cannot be reached for so long is lost.
LOST_AFTER_S = 12
RESOURCE = "AGENT"
# Where a page about the state of Dask is served until it is switched off: this cannot be avoided.
NOWHERE = "127.0.0.1:0"

_SETTINGS: dict[str, object] = {
    # By default a task whose worker died is started again three times, elsewhere.
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.no-workers-timeout": "5s",
    "distributed.scheduler.worker-ttl": f"{LOST_AFTER_S}s",
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.comm.timeouts.connect": "5s",
    "distributed.comm.timeouts.tcp": f"{LOST_AFTER_S}s",
    "distributed.comm.retry.count": 0,
    # Everything that would take CPU time on a host that measures.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.interval": "1s",  # it looks for a blocked event loop, by default 50 ×/s
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.diagnostics.nvml": False,
    "distributed.worker.http.routes": [],
    "distributed.scheduler.http.routes": [],
    # An agent gets its requests as tasks; Dask's other ways to run code there stay off.
    "distributed.worker.blocked-handlers": [
        "run",
        "run_coroutine",
        "actor_execute",
        "actor_attribute",
        "upload_file",
        "plugin-add",
        "plugin-remove",
        "update_data",
        "benchmark_disk",
        "benchmark_memory",
        "benchmark_network",
    ],
}


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

    config.set(_SETTINGS)
    # Answers carry the errors; Dask's log would stand between the lines of the display.
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
