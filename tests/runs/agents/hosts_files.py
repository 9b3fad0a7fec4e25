"""Hosts files for tests: several agents on this machine."""

from pathlib import Path

# Each host has a name, roles (joined by +) and an address.
HostRows = tuple[tuple[str, str, str], ...]


def write_hosts(
    folder: Path,
    hosts: HostRows,
    *,
    coordinator: str = "127.0.0.1",
    port: int = 0,
    start: str = "here",
    on_lost: str = "stop",
    tls: bool = False,
) -> Path:
    """Write a hosts file."""
    lines = [f'on_lost = "{on_lost}"', *(['tls = "certs"'] if tls else [])]
    lines += ["[coordinator]", f'address = "{coordinator}"', f"port = {port}"]
    for name, role, address in hosts:
        lines += ["[[hosts]]", f'name = "{name}"', f"roles = {role.split('+')}"]
        lines += [f'address = "{address}"', f'start = "{start}"']
    path = folder / "hosts.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
