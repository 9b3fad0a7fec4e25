"""Profiles: samplers' stacks are read, sorted into classes, and written for other programs."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachemark.analysis.why.profile import class_of, class_rules, library_function, shares_of
from cachemark.analysis.why.report import WhyReport
from cachemark.model.counts import FoldedStacks, parse_stacks
from cachemark.model.errors import TrialError
from cachemark.report.why import RENDERERS
from cachemark.report.why.profiles import profile_files

LANE = "closed_loop_lane (cachemark/lane_threads.py:16)"
GET = "Client._fetch_cmd (pymemcache/client/base.py:1115)"
KEY = "check_key_helper (pymemcache/client/base.py:100)"
C_LANE = "start_thread (libc.so.6);lane_play_window (cachemark/lane_play_window)"
PERL = "Lane::__ANON__ (cachemark/Lane.pm)"
PHP = "zend_execute (php8.2);execute_ex (php8.2)"
# Stacks as the samplers found them, shortened, with their classes.
STACKS = [
    ("python", f"{LANE};{GET};{KEY}", "key check"),
    ("python", f"{LANE};{GET};_readline (pymemcache/client/base.py:1612)", "parsing"),
    ("python", f"{LANE};{GET};_recv (pymemcache/client/base.py:1746)", "socket wrapper"),
    ("python", f"{LANE};{GET}", "library"),
    ("python", LANE, "cachemark's loop"),
    ("python", f"{LANE};{GET};loads (python/json/__init__.py:299)", "library"),
    ("python", "Thread.run (python/threading.py:964);work (x/pool.py:3)", "library"),
    (
        "go",
        "main.(*lane).play (cachemark/lane.go:9);github.com/x/memcache.(*Client).Get "
        "(memcache/memcache.go:383);internal/poll.(*FD).Write (go/internal/poll/fd_unix.go:359);"
        "internal/runtime/syscall/linux.Syscall6 (go/internal/runtime/syscall/asm.s:27)",
        "kernel",
    ),
    ("go", "runtime.schedule (go/runtime/proc.go:4135)", "event loop"),
    (
        "go",
        "runtime.gcBgMarkWorker (go/runtime/mgc.go:1400);runtime.scanobject (<a>:1)",
        "collection",
    ),
    (
        "go",
        "github.com/x/memcache.parseGetResponse (memcache/memcache.go:517);"
        "indexbytebody (go/internal/bytealg/indexbyte.s:29)",
        "parsing",
    ),
    ("node", "(anonymous) (memjs/lib/memjs/server.js:222);writeBuffer", "kernel"),
    ("node", "(garbage collector)", "collection"),
    ("node", "exports.parseMessage (memjs/lib/memjs/utils.js:54)", "parsing"),
    ("node", "onStreamRead (node:internal/stream_base_commons:168)", "socket wrapper"),
    ("ruby", "Dalli::Protocol::Binary#write (dalli/protocol/binary.rb:239);IO#write", "kernel"),
    ("ruby", "Dalli::Threadsafe#get (dalli/options.rb:22);Monitor#synchronize", "lock"),
    ("ruby", "(marking)", "collection"),
    (
        "ruby",
        "Dalli::Protocol::Binary::RequestFormatter.standard_request "
        "(dalli/protocol/binary/request_formatter.rb:84);Array#pack",
        "encoding",
    ),
    ("java", "cachemark/worker/Lane.closedLoop (cachemark/Lane)", "cachemark's loop"),
    ("java", "net/spy/memcached/MemcachedConnection.handleIO;epoll_wait", "kernel"),
    ("java", "java/util/concurrent/FutureTask.run", "thread hand-over"),
    ("java", "net/spy/memcached/compat/log/SunLogger.log;java/util/Formatter.<init>", "library"),
    ("c", f"{C_LANE};memcached_get (libmemcached.so.11.0.0);malloc (libc.so.6)", "library"),
    ("c", f"{C_LANE};__send (libc.so.6);tcp_sendmsg ([kernel])", "kernel"),
    ("c", f"{C_LANE};recorder_note (cachemark/recorder_note)", "cachemark's loop"),
    ("rust", "memcache::client::Client::get (worker);core::str::from_utf8 (worker)", "library"),
    (
        "rust",
        "async_memcached::Client::drive_receive (worker);__rustc::__rust_alloc (worker)",
        "library",
    ),
    ("rust", "<&mio::net::TcpStream as std::io::Write>::write (worker)", "socket wrapper"),
    ("php", f"{PHP};memcached_get (libmemcached.so.11);_emalloc (php8.2)", "library"),
    ("php", f"{PHP};zend_hash_find (php8.2)", "cachemark's loop"),
    ("php", "[unknown] (perf-12.map);zend_is_true (php8.2)", "cachemark's loop"),
    ("perl", f"{PERL};Cache::Memcached::CORE:sselect (Cache/Memcached.pm)", "kernel"),
    ("perl", f"{PERL};Time::HiRes::clock_gettime (Time/HiRes.pm)", "cachemark's loop"),
    (
        "perl",
        f"{PERL};Cache::Memcached::GetParser::parse_buffer (Cache/Memcached/GetParser.pm)",
        "parsing",
    ),
    ("java", "CompileBroker::compiler_thread_loop;PhaseLive::compute", "compiler"),
]


def profile(client: str, **stacks: int) -> FoldedStacks:
    named = {"get": f"{LANE};{GET}", "key": f"{LANE};{GET};{KEY}", "loop": LANE}
    return FoldedStacks(
        client=client,
        kind="get",
        language="python",
        sampler="py-spy 0.4.3",
        stacks={named[name]: count for name, count in stacks.items()},
    )


@pytest.mark.parametrize(("language", "stack", "expected"), STACKS)
def test_a_stack_has_the_class_of_its_innermost_known_function(
    language: str, stack: str, expected: str
) -> None:
    assert class_of(stack, language) == expected


def test_the_function_of_the_library_is_the_innermost_one() -> None:
    assert library_function(f"{LANE};{GET};loads (python/json/__init__.py:299)", "python") == GET
    assert library_function(LANE, "python") == ""
    get = "async_memcached::Client::get (worker)"
    assert library_function(f"{get};__rustc::__rust_alloc (worker)", "rust") == get


def test_shares_are_percentages_with_the_error_of_the_sampling() -> None:
    shares = shares_of(profile("a", get=60, key=30, loop=10))
    assert {name: round(share.value) for name, share in shares.classes.items()} == {
        "library": 60,
        "key check": 30,
        "cachemark's loop": 10,
    }
    assert list(shares.functions) == [GET, KEY]
    # The exact 99 % interval of 60 of 100.
    assert shares.classes["library"].error == pytest.approx(12.7, abs=0.3)


def test_a_function_below_its_error_is_left_out() -> None:
    shares = shares_of(profile("a", get=20, key=1, loop=2))
    assert list(shares.functions) == [GET]
    assert "key check" in shares.classes


def test_every_rule_is_named_and_can_match() -> None:
    assert all(rule.frame for rule in class_rules())
    assert {rule.name for rule in class_rules()} >= {"library", "kernel", "collection", "routing"}


def test_a_file_has_its_sampler_and_only_stacks_of_calls() -> None:
    made_ready = "Player.run (cachemark/player.py:120);encode (cachemark/histogram.py:3)"
    text = (
        f"# sampler: py-spy 0.4.3\n{LANE};{GET} 3\n{made_ready} 9\n{LANE};{GET} 2\nf (x.py:1) 1\n"
    )
    assert parse_stacks(text) == ("py-spy 0.4.3", {f"{LANE};{GET}": 5, "f (x.py:1)": 1}, "")


def test_a_missing_sampler_is_the_reason() -> None:
    text = "# missing: no stackprof: apt-get install ruby-stackprof\n"
    assert parse_stacks(text) == ("", {}, "no stackprof: apt-get install ruby-stackprof")
    assert parse_stacks("# sampler: x\n") == ("x", {}, "the sampler took no sample")


def test_a_line_that_is_no_stack_is_refused() -> None:
    with pytest.raises(TrialError, match="no stack"):
        parse_stacks("Traceback (most recent call last)\n")


FRAME = st.text(
    st.characters(exclude_characters=";\n\r", exclude_categories=["C", "Z"]), min_size=1
)


@given(st.dictionaries(st.lists(FRAME, min_size=1).map(";".join), st.integers(1, 10**9)))
def test_all_stacks_are_read_again(stacks: dict[str, int]) -> None:
    stacks = {stack: count for stack, count in stacks.items() if "(cachemark/" not in stack}
    text = "".join(f"{stack} {count}\n" for stack, count in stacks.items() if stack[0] != "#")
    assert parse_stacks(text)[1] == {stack: n for stack, n in stacks.items() if stack[0] != "#"}


def test_the_answer_has_the_shares_and_the_heaviest_functions() -> None:
    profiles = [profile("a", get=60, key=40), profile("b", loop=1)]
    failed = FoldedStacks(
        client="c", kind="get", language="php", failure="its worker has no sampler"
    )
    report = WhyReport(
        work="",
        server="",
        repeat=3,
        counted=[],
        differences=[],
        shares=[shares_of(each) for each in [*profiles, failed]],
    )
    # Kinds are those that were counted.
    counted = msgspec.json.decode(b'[{"client":"c","kind":"get","failure":"x"}]', type=list[dict])
    report = msgspec.convert({**msgspec.to_builtins(report), "counted": counted}, WhyReport)
    text = " ".join(RENDERERS["markdown"](report, None).replace("\\", "").split())
    assert "| key check | 40 ±13 % | – |" in text
    assert f"most of the library's time is in {GET} 60 ±13 %, {KEY} 40 ±13 %." in text
    assert "c has no profile: its worker has no sampler." in text


def test_files_are_what_other_programs_read(tmp_path: Path) -> None:
    profiles = [profile("go/a@./mine", get=3, key=1), profile("b", loop=2)]
    files = profile_files(profiles)
    assert files["1-go-a-.-mine-get.folded"].decode() == f"{LANE};{GET} 3\n{LANE};{GET};{KEY} 1\n"
    scope = json.loads(files["profiles.speedscope.json"])
    first = scope["profiles"][0]
    names = [scope["shared"]["frames"][number]["name"] for number in first["samples"][1]]
    assert names == ["closed_loop_lane", "Client._fetch_cmd", "check_key_helper"]
    assert (first["weights"], first["endValue"]) == ([3, 1], 4)
    assert profile_files([]) == {}
    if go := shutil.which("go"):
        path = tmp_path / "profile.pb.gz"
        path.write_bytes(files["1-go-a-.-mine-get.pb.gz"])
        command = [go, "tool", "pprof", "-top", "-symbolize=none", str(path)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert ["3", "75.00%", "75.00%", "4", "100%", "Client._fetch_cmd"] in [
            line.split() for line in said.splitlines()
        ]
    else:
        assert gzip.decompress(files["1-go-a-.-mine-get.pb.gz"]).count(b"check_key_helper") == 1


def test_the_page_holds_each_profile_and_no_markup_of_others() -> None:
    evil = FoldedStacks(
        client="</script><b>",
        kind="get",
        language="python",
        sampler="x",
        stacks={"<i> (a.py:1)": 1},
    )
    page = profile_files([evil])["flames.html"].decode()
    assert "</script><b>" not in page
    assert "<i> (a.py" not in page
    assert "\\u003ci> (a.py:1)" in page
    assert "http://" not in page.replace("http://www.w3.org/", "")
