"""What ``check`` reports about a folder on a file system without hard links, as target and as staging."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import Problem, StagingUnavailable
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.staging.store import supports_exclusive_create
from airflow_cdc_provider.targets.delta.target import DeltaTarget


@pytest.fixture
def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(source: object, name: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refused)


def check(folder: Path) -> list[Problem]:
    target = DeltaTarget(Target("delta", str(folder)), ConnectionInfo(), "shop", ChangeLog(LocalStore("/nowhere")))
    return target.check([])


@pytest.mark.usefixtures("without_links")
def test_a_target_folder_without_hard_links_is_refused_with_a_message(tmp_path: Path) -> None:
    (problem,) = check(tmp_path / "lake")
    assert problem.code == "TGT004" and "no hard links" in problem.found and "file system" in problem.do


@pytest.mark.usefixtures("without_links")
def test_staging_without_hard_links_is_refused_with_a_message(tmp_path: Path) -> None:
    with pytest.raises(StagingUnavailable, match=r"STG011.*exclusively.*link\(\).*hard links"):
        supports_exclusive_create(LocalStore(str(tmp_path)))


def test_a_missing_folder_is_no_problem_and_is_not_created(tmp_path: Path) -> None:
    assert check(tmp_path / "lake" / "tables") == []
    assert list(tmp_path.iterdir()) == []
