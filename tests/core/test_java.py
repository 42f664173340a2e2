"""Which of several Java installations is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_cdc_provider import java
from airflow_cdc_provider.core.errors import CheckFailed


def install(folder: Path, version: str, modules: str = "java.base jdk.incubator.vector") -> Path:
    binary = folder / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    (folder / "release").write_text(f'IMPLEMENTOR="Vendor"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return folder


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java; its system folder is ``<machine>/jvm``."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(java, "SYSTEM_FOLDERS", (tmp_path / "jvm",))
    return tmp_path


@pytest.mark.parametrize("version", ["17.0.15", "21", "21.0.9", "17-ea"])
def test_java_17_and_21_run_spark(machine: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    home = install(machine / "chosen", version)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.find_java().home == home


@pytest.mark.parametrize("version", ["1.8.0_462", "11.0.28", "25.0.3", "unheard-of"])
def test_another_java_is_named_in_the_error(machine: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    home = install(machine / "chosen", version)
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(CheckFailed) as caught:
        java.find_java()
    (problem,) = caught.value.problems
    assert problem.code == "ENV001"
    assert problem.found == f"{home} ({version})"


def test_a_runtime_without_the_vector_module_is_refused(machine: Path) -> None:
    install(machine / "jvm" / "small", "17.0.15", modules="java.base java.sql")
    with pytest.raises(CheckFailed, match="small"):
        java.find_java()


def test_the_java_on_path_precedes_the_system_folder(machine: Path) -> None:
    install(machine / "jvm" / "a", "21.0.1")
    home = install(machine / "elsewhere", "17.0.1")
    (machine / "bin").mkdir()
    (machine / "bin" / "java").symlink_to(home / "bin" / "java")
    assert java.find_java().home == home


def test_an_unsupported_java_on_path_is_skipped(machine: Path) -> None:
    unfit = install(machine / "elsewhere", "25")
    (machine / "bin").mkdir()
    (machine / "bin" / "java").symlink_to(unfit / "bin" / "java")
    fit = install(machine / "jvm" / "b", "21.0.1")
    assert java.find_java().home == fit


def test_an_explicit_java_home_is_never_replaced(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(machine / "jvm" / "b", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(machine / "nowhere"))
    with pytest.raises(CheckFailed, match=r"\(no Java\)"):
        java.find_java()


def test_a_machine_without_java_gets_the_command_that_installs_it(machine: Path) -> None:
    with pytest.raises(CheckFailed, match=r"found: none .* do: apt-get install openjdk-17-jre-headless"):
        java.find_java()
