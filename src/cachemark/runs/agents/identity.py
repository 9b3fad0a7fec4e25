"""The cachemark of a host: hosts with different ones must not measure together."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import cachemark
from cachemark.host import process
from cachemark.host.binaries import of_file
from cachemark.host.facts import facts
from cachemark.host.placement import usable_cpus
from cachemark.runs.agents.messages import Identity, Software


def identify(cpus: str) -> Identity:
    """This host and the software on it; `cpus` are its CPUs in the hosts file.

    Raises UsageError without the engine.
    """
    wanted = process.parse_cpus(cpus) if cpus else set[int]()
    return Identity(
        facts=facts(), software=own_software(), absent_cpus=sorted(wanted - set(usable_cpus()))
    )


def own_software() -> Software:
    """The software of this process. Raises UsageError without the engine."""
    engine = Path(process.binary_path()).resolve()
    hashed = of_file("engine", engine, str(engine))
    return Software(
        version=cachemark.__version__,
        engine_sha256=hashed.sha256 if hashed else "",
        source_sha256=_source_sha256(Path(cachemark.__file__).parent),
    )


def _source_sha256(folder: Path) -> str:
    """One hash over the Python sources: versions under development have the same number."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def differences(own: Software, others: Mapping[str, Software]) -> list[str]:
    """The differences between the hosts' software and the coordinator's, a line for each. Pure."""
    lines: list[str] = []
    for name, other in others.items():
        for what, here, there in [
            ("cachemark", own.version, other.version),
            ("the engine's hash", own.engine_sha256[:12], other.engine_sha256[:12]),
            ("the hash of cachemark's sources", own.source_sha256[:12], other.source_sha256[:12]),
        ]:
            if here != there:
                lines.append(f"{name}: {what} is {there or 'unknown'}, here it is {here}")
    return lines
