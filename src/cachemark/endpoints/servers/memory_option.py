"""The option `memory` of servers, and whether items fit into it.

Every kind takes the same sizes: `200m`, `2g`; a bare number is MiB.
"""

import math

import msgspec

from cachemark.endpoints.servers.spec import ServerSpec
from cachemark.model.errors import UsageError
from cachemark.model.units import MIB, parse_memory

OPTION = "memory"


class MemoryModel(msgspec.Struct, frozen=True, kw_only=True):
    """How much memory a server needs for items: an estimate, within about 10 %.

    `default` is the limit without the option. An item takes its key and value and `item_bytes`,
    times `rounding`. `cachemark memory` measures the true figures.
    """

    default: str = "64m"
    # memcached's: header, cas number, line ends; then chunks of sizes that grow by a quarter.
    item_bytes: int = 57
    rounding: float = 1.1

    def needed_bytes(self, items: int, data_bytes: int) -> int:
        """The memory for items whose keys and values have `data_bytes` in all."""
        return math.ceil((data_bytes + items * self.item_bytes) * self.rounding)


def check_memory(spec: ServerSpec, *, least: int) -> None:
    """Refuse a `memory` that is no size, or below `least` bytes. Raises UsageError."""
    text = spec.options.get(OPTION)
    if text is None:
        return
    if parse_memory(text, f"server {spec.text!r}: {OPTION}") < least:
        raise UsageError(
            f"server {spec.text!r}: {OPTION}={text} is too little",
            f"at least {least // 1024}k" if least < MIB else f"at least {least // MIB}m",
        )


def memory_bytes(text: str) -> int:
    """A checked `memory` in bytes."""
    return parse_memory(text, OPTION)


def memory_mib(text: str) -> int:
    """A checked `memory` in whole MiB, for servers that take nothing else."""
    return memory_bytes(text) // MIB
