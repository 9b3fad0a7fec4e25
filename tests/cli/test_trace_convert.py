"""`cachemark trace convert` in words and as JSON."""

import csv
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


def test_sizes_are_rounded_up_to_four_for_each_doubling(inside: Inside, tmp_path: Path) -> None:
    sizes = [0, 1, 5, 8, 9, 10, 11, 16, 17, 100, 1000, 1024, 1025]
    rows = "".join(f"{at},set,k{at},{size}\n" for at, size in enumerate(sizes))
    (tmp_path / "a.csv").write_text("time,op,key,size\n" + rows)
    told = inside(
        "trace", "convert", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--round-sizes"
    )
    assert told.returncode == 0, told.stderr
    lines = csv.DictReader((tmp_path / "b.csv").read_text().splitlines())
    rounded = [int(line["size"]) for line in lines]
    assert rounded == [0, 1, 5, 8, 10, 10, 12, 16, 20, 112, 1024, 1024, 1280]


def test_the_file_that_is_read_is_not_written(inside: Inside, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("time,op,key,size\n1,get,a,\n")
    told = inside("trace", "convert", str(path), str(tmp_path / "." / "a.csv"))
    assert told.returncode == 2
    assert "write another file" in told.stderr
    assert path.read_text().startswith("time,op")


def test_a_damaged_trace_is_refused(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "a.trace").write_bytes(b"cmtrace\x01 and then something else")
    told = inside("trace", "convert", str(tmp_path / "a.trace"), str(tmp_path / "b.csv"))
    assert told.returncode == 2
    assert "block 1: " in told.stderr
    assert not (tmp_path / "b.csv").exists()
