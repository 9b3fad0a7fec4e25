"""Agents as processes of a test, which can be killed, stopped, and started again."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path

from cachemark.host import process

_END_S = 60


class Agents:
    """The agents of all hosts, as processes of this one."""

    def __init__(self, commands: Mapping[str, list[str]]) -> None:
        self._commands = commands
        self.running = {name: process.start(command) for name, command in commands.items()}

    def kill(self, name: str) -> None:
        """Kill an agent, and wait for its end."""
        self.running[name].kill()
        assert self.running[name].wait(_END_S)

    def start_again(self, name: str) -> None:
        """Start an agent that was killed."""
        self.running[name].stop(0)
        self.running[name] = process.start(self._commands[name])

    def send(self, name: str, number: signal.Signals) -> None:
        """Send a signal to an agent."""
        os.kill(self.running[name].pid, number)

    def processes(self, name: str) -> list[str]:
        """The processes that an agent has started and that still run."""
        found: list[str] = []
        for pid in _children(self.running[name].pid):
            found += [f"{name}: {Path(f'/proc/{pid}/comm').read_text(encoding='utf-8').strip()}"]
        return found

    def stop(self) -> None:
        """Stop them all."""
        for agent in self.running.values():
            agent.stop()


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text(encoding="ascii").split()]
