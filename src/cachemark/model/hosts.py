"""The hosts of a run over several machines, as frozen values: the contents of a hosts file."""

import ipaddress
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cachemark.model.errors import UsageError
from cachemark.model.experiment import Load, TomlTable
from cachemark.model.setting_types import Name

Role = Literal["server", "client", "load"]
# Every hosts file has these roles. Load generators are only for loads with a measuring client.
NEEDED_ROLES: tuple[Role, ...] = ("server", "client")
# An agent's port; 0: any free one.
Port = Annotated[int, Meta(ge=0, le=65535)]


class CoordinatorPlace(TomlTable, frozen=True, kw_only=True):
    """Where `cachemark run --hosts` listens: the agents connect to this address.

    `port` is the TCP port for the agents, and the UDP port for their clocks. 0, any free port,
    needs hosts that all start `here`.
    """

    address: str
    port: Port


class Host(TomlTable, frozen=True, kw_only=True):
    """A machine: its roles, and the IPv4 address at which the other hosts reach it.

    `port` is the agent's own. Servers and workers may use `cpus`, such as `0-3`; empty: all.
    `environment` is added to their environment. With `start = "here"` the coordinator starts the
    agent on its own machine; otherwise the user starts it there, with `cachemark agent`.
    """

    name: Name
    roles: Annotated[list[Role], Meta(min_length=1)]
    address: str
    port: Port = 0
    cpus: str = ""
    environment: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    start: Literal["there", "here"] = "there"


class Hosts(TomlTable, frozen=True, kw_only=True):
    """A hosts file. `tls` is the folder of the certificates that `cachemark hosts certs` makes.

    It may be empty if all agents start here: then each run makes its own certificates.
    `on_lost` is what a run does after the trial in which it lost a host.
    """

    coordinator: CoordinatorPlace
    tls: str = ""
    on_lost: Literal["stop", "continue"] = "stop"
    hosts: Annotated[list[Host], Meta(min_length=1)]

    def named(self, name: str) -> Host:
        """The host of this name. Raises UsageError."""
        for host in self.hosts:
            if host.name == name:
                return host
        known = ", ".join(host.name for host in self.hosts)
        raise UsageError(f"no host {name!r} in the hosts file", f"its hosts are: {known}")

    @property
    def server(self) -> Host:
        """The host that runs the servers."""
        return next(host for host in self.hosts if "server" in host.roles)

    @property
    def clients(self) -> list[Host]:
        """The hosts that run clients: each plays its share of every tape."""
        return self._with_role("client")

    @property
    def generators(self) -> list[Host]:
        """The hosts that make the load beside a measuring client."""
        return self._with_role("load")

    def makers_of(self, load: Load) -> list[Host]:
        """The hosts that make this load: all that can, or the first `load.hosts` of them."""
        able = self.generators if load.measure else self.clients
        return able[: load.hosts]

    def _with_role(self, role: Role) -> list[Host]:
        return [host for host in self.hosts if role in host.roles]


def left_after(hosts: Hosts, lost: Collection[str], load: Load) -> Hosts | None:
    """The hosts with which a run continues after it has lost some; None: it must stop. Pure.

    A closed loop has connections on each host, so with fewer hosts it would be another load.
    """
    left = msgspec.structs.replace(
        hosts, hosts=[host for host in hosts.hosts if host.name not in lost]
    )
    roles = {role for host in left.hosts for role in host.roles}
    needed = {role for host in hosts.hosts for role in host.roles}
    if hosts.on_lost == "stop" or load.schedule == "closed" or not roles.issuperset(needed):
        return None
    return left if len(left.makers_of(load)) >= (load.hosts or 1) else None


def check_hosts(hosts: Hosts) -> None:
    """Raise UsageError for hosts that cannot play anything. Pure."""
    for where, address in [
        ("coordinator", hosts.coordinator.address),
        *((f"host {host.name!r}", host.address) for host in hosts.hosts),
    ]:
        if not _is_ipv4(address):
            raise UsageError(
                f"{where}: address {address!r} is no IPv4 address",
                "write the address at which the other hosts reach it, such as 10.0.0.2",
            )
    if twice := _repeated(host.name for host in hosts.hosts):
        raise UsageError(f"two hosts have the name {twice!r}", "give each host a name of its own")
    _check_roles(hosts)
    if twice := _repeated(f"{h.address}:{h.port}" for h in hosts.hosts if h.port):
        raise UsageError(f"two agents on {twice}", "give one of them another port")
    if not hosts.coordinator.port and any(host.start == "there" for host in hosts.hosts):
        raise UsageError(
            'coordinator: port 0 is only for hosts with start = "here"',
            "agents elsewhere have to know the port: write one, such as 8786",
        )
    if not hosts.tls and any(host.start == "there" for host in hosts.hosts):
        raise UsageError(
            "an agent that does not start here needs certificates: without them, every user who "
            "can reach its port could run programs there",
            'write tls = "certs" and make them with `cachemark hosts certs FILE`',
        )


def _check_roles(hosts: Hosts) -> None:
    servers = [host for host in hosts.hosts if "server" in host.roles]
    if twice := _repeated(host.address for host in servers):
        names = [host.name for host in servers if host.address == twice]
        raise UsageError(
            f"two servers on one address: {' and '.join(names)} are both {twice}",
            "give the role server to one of them",
        )
    for role in NEEDED_ROLES:
        if not any(role in host.roles for host in hosts.hosts):
            raise UsageError(
                f"no host has the role {role}", f'write roles = ["{role}"] for one of the hosts'
            )
    if both := next((host for host in hosts.hosts if {"client", "load"} <= set(host.roles)), None):
        raise UsageError(
            f"host {both.name!r} has the roles client and load: its load would disturb what it "
            "measures",
            "give it one of them",
        )
    if len(servers) > 1:
        names = [host.name for host in servers]
        raise UsageError(
            f"{len(servers)} hosts have the role server: {', '.join(names)}",
            "give it to one: a trial has one server; `cluster:N:SERVER` starts several there",
        )


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def _repeated(names: Iterable[str]) -> str:
    """A name that occurs more than once; empty if there is none."""
    return next((name for name, count in Counter(names).items() if count > 1), "")
