"""A job reads the source that its run was decided under, or nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.columns.functions import hash_key_id
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.steps import Step
from airflow_cdc_provider.core.errors import SourceUnreachable, StepFailed
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.columns import Columns
from airflow_cdc_provider.core.spec.definition import TableRule
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


def hashing(folder: Path, planned: str, found: str) -> Job:
    """``planned``, ``found``: passwords of the connection."""
    job = a_job(folder)
    definition = replace(job.step.definition, tables=(TableRule("public.*", columns=Columns(hash=("email",))),))
    step = replace(job.step, definition=definition, hash_key_id=hash_key_id(planned.encode()))
    return Job(step, Secrets(hash=ConnectionInfo("hashes", password=found)), job.application)


def test_a_job_of_a_run_from_before_its_key_was_recorded_hashes(tmp_path: Path) -> None:
    key = "1" * 16
    job = hashing(tmp_path, key, key)
    plain = to_plain(job.step)
    del plain["hash_key_id"]
    secrets = Secrets(hash=ConnectionInfo("hashes", password=key))
    assert Job(from_plain(Step, plain), secrets, job.application).hash_key == key.encode()


def test_a_job_hashes_with_the_key_of_its_run_alone(tmp_path: Path) -> None:
    first, second = "1" * 16, "2" * 16
    assert hashing(tmp_path, first, first).hash_key == first.encode()
    with pytest.raises(StepFailed, match="CON006") as refused:
        _ = hashing(tmp_path, first, second).hash_key
    assert first not in str(refused.value) and second not in str(refused.value)
