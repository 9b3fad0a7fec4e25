"""`cachemark trace convert` in words and as JSON."""

import json
from pathlib import Path

from tests.cli.in_process import Inside


def test_a_trace_is_converted_there_and_back(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "time,op,key,size\n1,get,user:1,\n2,set,user:1,30\n3,append,b,1\n"
    )
    told = inside(
        "trace", "convert", str(tmp_path / "a.csv"), str(tmp_path / "a.trace"), "--anonymous"
    )
    assert told.returncode == 0, told.stderr
    assert "3 records" in told.stdout
    assert "1 get, 1 set" in told.stdout.replace("1 append, ", "")
    assert b"user" not in (tmp_path / "a.trace").read_bytes()
    back = inside("trace", "convert", str(tmp_path / "a.trace"), str(tmp_path / "b.csv"), "--json")
    assert json.loads(back.stdout)["origin"]["keys"] == "anonymous"
    lines = (tmp_path / "b.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in lines] == ["op", "get", "set", "append"]


def test_a_damaged_trace_is_refused(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "a.trace").write_bytes(b"cmtrace\x01 and then something else")
    told = inside("trace", "convert", str(tmp_path / "a.trace"), str(tmp_path / "b.csv"))
    assert told.returncode == 2
    assert "block 1: " in told.stderr
    assert not (tmp_path / "b.csv").exists()
