"""The set-up of the originals, with a repository of this test's own in place of each."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from cachemark.endpoints import originals as module
from cachemark.endpoints.originals import Original, named, originals, set_up
from cachemark.model.errors import UsageError


@pytest.fixture
def original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Original:
    """An original whose build copies a file."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "source").write_text("as committed")
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@example.org"]
    for words in (["init", "--quiet"], ["add", "source"], ["commit", "--quiet", "-m", "one"]):
        subprocess.run([*git, *words], cwd=repository, check=True)
    head = subprocess.run(
        [*git, "rev-parse", "HEAD"], cwd=repository, check=True, capture_output=True, text=True
    )
    (repository / "source").write_text("later")
    subprocess.run([*git, "commit", "--quiet", "-am", "two"], cwd=repository, check=True)
    build = tmp_path / "build"
    build.write_text("cp source product\n")
    monkeypatch.setattr(module, "_FOLDER", tmp_path)
    return Original(
        name="toy",
        repository=str(repository),
        commit=head.stdout.strip(),
        about="a test's own",
        needs={"sh": "dash"},
        build="build",
        product="product",
    )


def test_the_pinned_commit_is_built_once(original: Original) -> None:
    assert set_up(original)
    assert original.path.read_text() == "as committed"
    assert not set_up(original)


def test_a_build_that_fails_leaves_nothing_that_looks_ready(
    original: Original, tmp_path: Path
) -> None:
    (tmp_path / "build").write_text("touch product; echo 'no such header' >&2; exit 1\n")
    with pytest.raises(UsageError, match="no such header"):
        set_up(original)
    assert not original.path.exists()
    (tmp_path / "build").write_text("cp source product\n")
    assert set_up(original)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"repository": "/no/such/repository"}, "git clone"),
        ({"commit": "0" * 40}, "git checkout"),
        ({"product": "something else"}, "made no something else"),
        ({"needs": {"no-such-program": "its-package"}}, "cannot be built here"),
    ],
)
def test_each_refusal_says_why_and_what_to_do(
    original: Original, change: dict[str, str], says: str
) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        set_up(replace(original, **change))
    assert caught.value.remedy


def test_every_row_can_be_built_by_its_program() -> None:
    folder = Path(module.__file__).parent
    for row in originals().values():
        assert (folder / row.build).is_file()
        assert len(row.commit) == 40
        assert row.repository.startswith("https://")
    with pytest.raises(UsageError, match="no original 'ehcache'"):
        named(("ehcache",))
