"""The archive of class data: when it is built, kept and left out. Small commands stand in for the warm-up job."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from airflow_cdc_provider import appcds
from airflow_cdc_provider.java import Java


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(appcds, "find_java", lambda: Java(tmp_path / "jdk", "17.0.1", frozenset()))
    file = tmp_path / "one.jar"
    file.write_bytes(b"one")
    return file


class WarmUp:
    """Runs ``script`` with the path of the wanted archive as ``$1``, and counts its calls."""

    def __init__(self, script: str) -> None:
        self.script = script
        self.runs = 0

    def __call__(self, jars: Sequence[Path], java_options: Sequence[str], tables: Path) -> list[str]:
        self.runs += 1
        (wanted,) = (option.partition("=")[2] for option in java_options if "ArchiveClassesAtExit" in option)
        return ["sh", "-c", self.script, "warm-up", wanted]


def test_an_archive_is_built_once(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warm_up = WarmUp('echo classes > "$1"')
    monkeypatch.setattr(appcds, "warm_up", warm_up)
    built = appcds.archive([jar])
    assert built is not None
    assert built.read_text() == "classes\n"
    assert appcds.archive([jar]) == built
    assert warm_up.runs == 1


def test_other_jars_have_an_archive_of_their_own(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appcds, "warm_up", WarmUp('echo classes > "$1"'))
    first = appcds.archive([jar])
    jar.write_bytes(b"another version")
    assert appcds.archive([jar]) not in (None, first)


def test_reinstalled_jars_have_an_archive_of_their_own(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appcds, "warm_up", WarmUp('echo classes > "$1"'))
    first = appcds.archive([jar])
    os.utime(jar, (1, 1))
    assert appcds.archive([jar]) not in (None, first)


def test_an_archive_unused_for_long_is_removed_when_another_is_built(
    jar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appcds, "warm_up", WarmUp('echo classes > "$1"'))
    used, unused = appcds.archive([jar]), appcds.archive([])
    assert used is not None and unused is not None
    for archive in (used, unused):
        os.utime(archive, (1, 1))
    assert appcds.archive([jar]) == used
    appcds.archive([jar, jar])
    assert (used.exists(), unused.exists()) == (True, False)


def test_an_archive_whose_jars_are_gone_is_removed_when_another_is_built(
    jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appcds, "warm_up", WarmUp('echo classes > "$1"'))
    gone, changed, whole = (tmp_path / name for name in ("gone.jar", "changed.jar", "whole.jar"))
    built = {}
    for file in (gone, changed, whole):
        file.write_bytes(b"classes")
        built[file] = appcds.archive([file])
    gone.unlink()
    changed.write_bytes(b"other classes")
    appcds.archive([jar])
    left = {found.stem for found in (tmp_path / "cache").rglob("*.jsa")}
    assert {file.name for file, archive in built.items() if archive and archive.stem in left} == {"whole.jar"}


def test_what_a_killed_build_left_is_removed_by_a_later_one(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appcds, "warm_up", WarmUp('echo classes > "$1"'))
    cache = appcds.archive_path(appcds.find_java(), [jar]).parent
    left, running = cache / f"{appcds.SCRATCH}a", cache / f"{appcds.SCRATCH}b"
    for folder in (left, running):
        folder.mkdir(parents=True)
        (folder / "output").touch()
    os.utime(left, (1, 1))
    assert appcds.archive([jar]) is not None
    assert (left.exists(), running.exists()) == (False, True)


@pytest.mark.parametrize(
    ("script", "output", "error"),
    [
        ("echo no such option; exit 1", "no such option\n", "exit status 1"),
        ("echo left early", "left early\n", "No such file"),
        ("echo slow; exec sleep 60", "slow\n", "timed out"),
    ],
)
def test_a_build_that_fails_is_tried_again_a_day_later_and_its_output_is_kept(
    jar: Path, monkeypatch: pytest.MonkeyPatch, script: str, output: str, error: str
) -> None:
    warm_up = WarmUp(script)
    monkeypatch.setattr(appcds, "warm_up", warm_up)
    assert appcds.archive([jar], limit_s=2) is None
    assert appcds.archive([jar]) is None
    assert warm_up.runs == 1
    failure = appcds.failure_file(appcds.archive_path(appcds.find_java(), [jar]))
    assert failure.read_text().startswith(output)
    assert error in failure.read_text()
    warm_up.script = 'echo classes > "$1"'
    assert appcds.archive([jar]) is None
    os.utime(failure, (time.time() - appcds.RETRY_S - 1,) * 2)
    assert appcds.archive([jar]) is not None
    assert not failure.exists()


def test_an_archive_in_advance_is_built_where_a_build_just_failed(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appcds, "warm_up", WarmUp("exit 1"))
    assert appcds.archive([jar]) is None
    monkeypatch.setattr(appcds, "warm_up", WarmUp('echo classes > "$1"'))
    assert appcds.archive_in_advance([jar]) is not None


def test_a_second_process_starts_without_an_archive_and_does_not_wait(
    jar: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    warm_up = WarmUp('echo classes > "$1"')
    monkeypatch.setattr(appcds, "warm_up", warm_up)
    built = appcds.archive_path(appcds.find_java(), [jar])
    built.parent.mkdir(parents=True)
    with built.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert appcds.archive([jar]) is None
    assert warm_up.runs == 0
    assert appcds.archive([jar]) == built


def test_a_cache_that_cannot_be_written_leaves_jobs_without_an_archive(
    jar: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert appcds.archive([jar]) is None


def test_an_archive_in_advance_needs_no_cache_that_can_be_written(
    jar: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert appcds.archive_in_advance([jar]) is None


def test_a_short_job_without_an_archive_still_starts_with_the_quick_compiler() -> None:
    assert appcds.java_options(None) == list(appcds.SHORT_JOB)
    assert set(appcds.java_options(None)) < set(appcds.java_options(Path("some.jsa")))


def test_the_warm_up_job_has_no_environment_of_airflow(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", "postgresql://user:word@host/db")
    assert not any(name.startswith("AIRFLOW") for name in appcds.environment(appcds.find_java()))
    assert "AIRFLOW_CONN_SHOP" in os.environ
