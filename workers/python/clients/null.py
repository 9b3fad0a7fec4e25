"""null: no library at all. What is measured with it is the loop's own cost."""

from __future__ import annotations

from clients import Base
from judge import CLIENT, found, found_many, known, sent

LIBRARY = "hdrhistogram"  # the only thing that it needs
API = "sync"
KEYS = bytes
WIRES = ("text",)
FEATURES = ("threads", "open_loop", "unix")
OPTIONS = ()
UNREACHABLE = OSError


class Session(Base):
    """Answers each read with what it has to bring, and does nothing else."""

    def __init__(self, _setup):
        pass

    def get(self, op):
        return answer, (op.value,), found

    gets = gat = get

    def mget(self, op):
        return answer, (op.pairs,), found_many

    def delete(self, _op):
        return answer, (True,), known

    touch = delete

    def set(self, _op):
        return answer, (True,), sent

    set_noreply = mset = mset_noreply = add = add_noreply = replace = replace_noreply = set
    delete_noreply = touch_noreply = version = set

    def failure(self, _error, _op):
        return CLIENT

    def barrier(self):
        return 0

    def close(self):
        pass


def answer(value):
    return value
