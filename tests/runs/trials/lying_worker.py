"""Passes requests on to another worker, and changes what its `done` says of its window.

Usage: lying_worker.py honest|clock|cpu PROGRAM ARGUMENTS
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import IO

DIVISORS = {
    "honest": {},
    "clock": {"elapsed_ns": 3, "send_elapsed_ns": 3},
    "cpu": {"cpu_user_ns": 10, "cpu_system_ns": 10},
}


def main() -> None:
    lie, *command = sys.argv[1:]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        arguments = (worker.stdout, DIVISORS[lie])
        answers = threading.Thread(target=pass_answers, args=arguments)
        answers.start()
        for line in sys.stdin.buffer:
            worker.stdin.write(line)
            worker.stdin.flush()
        worker.stdin.close()
        answers.join()


def pass_answers(lines: IO[bytes], divisors: dict[str, int]) -> None:
    for line in lines:
        answer = json.loads(line)
        if answer["type"] == "done":
            answer |= {name: answer[name] // by for name, by in divisors.items()}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
