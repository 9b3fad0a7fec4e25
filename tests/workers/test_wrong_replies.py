"""A worker in Python reports the bytes of a wrong value, whatever the library returns it in."""

import base64
import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT

_REPORT = """
import json
from types import SimpleNamespace
from call_log import wrong_replies

item = SimpleNamespace(value=b"v")
print(json.dumps(wrong_replies([SimpleNamespace(wrong=[(7, ANSWER)])])))
"""


@pytest.mark.parametrize("answer", ['b"v"', '(b"v", 12)', "item", '{b"k": item}', '{b"k": b"v"}'])
def test_wrong_value_is_reported_as_bytes(answer: str) -> None:
    program = _REPORT.replace("ANSWER", answer)
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT / "workers" / "python",
        capture_output=True,
        text=True,
        check=True,
    )
    [reply] = json.loads(ended.stdout)
    assert (reply["record"], base64.b64decode(reply["value"])) == (7, b"v")
