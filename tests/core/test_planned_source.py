"""A job reads the source that its run was decided under, or nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.errors import SourceUnreachable
from spark_jobs.runtime.job import Job
from tests.core.test_job import a_job

A, B = {"system": "7", "timeline": "1"}, {"system": "8", "timeline": "1"}


class Server:
    """Behind one address."""

    def __init__(self, identity: dict[str, str]) -> None:
        self.is_now, self.asked = identity, 0

    def identity(self) -> dict[str, str]:
        self.asked += 1
        return self.is_now


def planned(folder: Path, server: Server) -> Job:
    job = a_job(folder)
    job = Job(replace(job.step, source_identity=A), job.secrets, job.application)
    vars(job.resources).update(connector=server)
    return job


def test_a_job_refuses_another_source_than_that_of_its_run(tmp_path: Path) -> None:
    job = planned(tmp_path, Server(B))
    with pytest.raises(SourceUnreachable, match=r"SRC010 .*system 7 → 8 .*start a new run"):
        _ = job.source


def test_the_source_is_asked_once_and_before_a_commit_once_more(tmp_path: Path) -> None:
    server = Server(A)
    job = planned(tmp_path, server)
    assert job.source is replace(job, step=replace(job.step, window=7)).source
    assert server.asked == 1
    server.is_now = B
    with pytest.raises(SourceUnreachable, match="SRC010"):
        job.require_planned_source()


def test_what_a_source_can_do_is_known_without_asking_it(tmp_path: Path) -> None:
    server = Server(B)
    assert planned(tmp_path, server).connector is server and server.asked == 0
