"""mc-crusher discards replies unread and reports no times, so no percentile can be compared."""

from cachemark.checks.fidelity.tools.tool import KEY_BYTES, Tool, ToolJob

_PREFIX = "k" * (KEY_BYTES - 4)


def command(job: ToolJob) -> list[str]:
    """Write the settings file of reads; returns the command line."""
    load = job.load
    line = f"send=ascii_get,recv=blind_read,conns={load.callers},pipelines={job.depth},live_rand=1"
    return _command(job, line)


def fill(job: ToolJob) -> list[str]:
    """The same for one connection that stores each key in turn, again and again."""
    size = job.load.value_bytes
    line = f"send=ascii_set,recv=blind_read,conns=1,pipelines=1,value_size={size}"
    return _command(job, line)


def _command(job: ToolJob, line: str) -> list[str]:
    path = job.folder / "mc-crusher.conf"
    keys = f"key_prefix={_PREFIX},key_count={job.load.keys},key_prealloc=0"
    path.write_text(f"{line},{keys}\n", encoding="ascii")
    words = [job.program, "--conf", str(path), "--ip", "127.0.0.1", "--port", str(job.port)]
    return [*words, "--timeout", str(job.seconds)]


TOOL = Tool(
    name="mc-crusher",
    programs=("mc-crusher",),
    home="https://github.com/memcached/mc-crusher",
    tried="commit 7ca3f14",
    silent="it reads no replies and reports no times",
    verifies="nothing: replies are discarded",
    pipelines=True,
    fill=fill,
    command=command,
)
