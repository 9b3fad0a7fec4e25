"""Passes requests on to another worker, and changes what it says of its window and its slices.

Usage: lying_worker.py LIE PROGRAM ARGUMENTS. LIE is `honest`; `clock` or `cpu`, which all workers
tell, or `bytes` (of values); or `clock-of-one` or `cpu-of-one`, which only the worker of the tape's
second segment tells.
"""

import json
import subprocess
import sys
import threading
from typing import IO

DIVISORS = {
    "honest": {},
    "clock": {"elapsed_ns": 3, "send_elapsed_ns": 3},
    "cpu": {"cpu_user_ns": 10, "cpu_system_ns": 10},
    "bytes": {},
}


def main() -> None:
    lie, *command = sys.argv[1:]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        lie, _, of_one = lie.partition("-")
        divisors: dict[str, int] = {} if of_one else DIVISORS[lie]
        answers = threading.Thread(
            target=pass_answers, args=(worker.stdout, divisors, lie == "bytes")
        )
        answers.start()
        for line in sys.stdin.buffer:
            if of_one and b'"segment"' in line and json.loads(line)["segment"][0] == 1:
                divisors |= DIVISORS[lie]
            worker.stdin.write(line)
            worker.stdin.flush()
        worker.stdin.close()
        answers.join()


def pass_answers(lines: IO[bytes], divisors: dict[str, int], more_bytes: bool) -> None:
    for line in lines:
        answer = json.loads(line)
        if answer["type"] in ("done", "slice_done"):
            told = divisors.keys() & answer.keys()
            answer |= {name: answer[name] // divisors[name] for name in told}
            for each in answer.get("operations", {}).values() if more_bytes else ():
                each["value_bytes"] *= 2
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
