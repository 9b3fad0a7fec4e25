"""Hosts files for tests: several agents on this machine."""

from __future__ import annotations

from pathlib import Path

SERVER_AND_CLIENTS = (("s", "server", "127.0.0.1"), ("c1", "client", "127.0.0.1"))


def write_hosts(
    folder: Path,
    hosts: tuple[tuple[str, str, str], ...] = SERVER_AND_CLIENTS,
    *,
    coordinator: str = "127.0.0.1",
    port: int = 0,
    start: str = "here",
    tls: bool = False,
) -> Path:
    """Write a hosts file; each host has a name, a role and an address."""
    lines = ['tls = "certs"'] if tls else []
    lines += ["[coordinator]", f'address = "{coordinator}"', f"port = {port}"]
    for name, role, address in hosts:
        lines += ["[[hosts]]", f'name = "{name}"', f'roles = ["{role}"]']
        lines += [f'address = "{address}"', f'start = "{start}"']
    path = folder / "hosts.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
