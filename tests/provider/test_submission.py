"""The command line and the settings of spark-submit."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from airflow_cdc_provider.core.decisions.spark_application import TaskAttempt
from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.spec.definition import Source, Spark, Staging, Target
from airflow_cdc_provider.hooks import drivers
from airflow_cdc_provider.hooks.spark import (
    SparkJob,
    SparkSubmission,
    driver_environment,
    job_jars,
    spark_conf,
    submission,
)
from tests.provider.step_harness import StepHarness


def attempt(kind: StepKind) -> TaskAttempt:
    return TaskAttempt("shop", kind, "r1", str(kind), 1, "4bd0")


def test_the_yaml_overrides_our_settings_and_java_options_are_joined() -> None:
    wanted = {"spark.driver.memory": "4g", "spark.driver.extraJavaOptions": "-Xss4m", "spark.ui.enabled": "true"}
    conf = spark_conf(wanted, ["-Duser.timezone=UTC", "-XX:+UseSerialGC"], local=True)
    assert conf["spark.driver.memory"] == "4g"
    assert conf["spark.ui.enabled"] == "true"
    assert conf["spark.driver.extraJavaOptions"] == "-Duser.timezone=UTC -XX:+UseSerialGC -Xss4m"
    assert conf["spark.executor.extraJavaOptions"] == "-Duser.timezone=UTC"


def test_a_local_driver_listens_on_loopback_only() -> None:
    assert spark_conf({}, [], local=True)["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.driver.bindAddress" not in spark_conf({}, [], local=False)


def test_the_drivers_environment_is_the_workers_without_airflows_own() -> None:
    worker = {
        "PATH": "/usr/bin",
        "HOME": "/home/airflow",
        "AIRFLOW_CONN_SHOP_DB": "x",
        "AIRFLOW_VAR_KEY": "x",
        "AIRFLOW__CORE__FERNET_KEY": "x",
        "AIRFLOW_HOME": "/opt/airflow",
    }
    assert driver_environment(worker, Path("/venv/bin/python"), Path("/java")) == {
        "PATH": "/venv/bin:/usr/bin",
        "HOME": "/home/airflow",
        "AIRFLOW_HOME": "/opt/airflow",
        "PYSPARK_PYTHON": "/venv/bin/python",
        "JAVA_HOME": "/java",
    }


def test_a_job_gets_the_jars_of_its_target_and_of_its_storages(tmp_path: Path) -> None:
    definition = StepHarness(tmp_path).definition
    assert job_jars(definition) == []
    ends = replace(definition, source=Source("postgres", "shop_db"), target=Target("delta", str(tmp_path)))
    assert job_jars(ends) == ["delta"]
    azure = "abfss://lake@acme.dfs.core.windows.net/_cdc"
    for location, group in (("s3://lake/_cdc", "s3"), ("gs://lake/_cdc", "gs"), (azure, "abfss")):
        assert job_jars(replace(ends, staging=Staging(location))) == ["delta", group]
    for storage, groups in (("folder", []), ("s3", ["s3"]), ("gs", ["iceberg_gs"]), ("abfss", ["iceberg_abfss"])):
        iceberg = replace(ends, target=Target("iceberg", connection="rest", options={"storage": storage}))
        assert job_jars(iceberg) == ["iceberg", *groups]
        assert job_jars(replace(iceberg, staging=Staging("s3://lake/_cdc"))) == list(
            dict.fromkeys(["iceberg", "s3", *groups])
        )


@pytest.mark.usefixtures("own_cache", "connections")
def test_short_steps_start_fast_and_long_ones_keep_the_full_compiler(tmp_path: Path) -> None:
    definition = StepHarness(tmp_path).definition

    def options(kind: StepKind, rows: int | None) -> str:
        return submission(definition, attempt(kind), "/s/step.json", rows).conf["spark.driver.extraJavaOptions"]

    assert "-XX:TieredStopAtLevel=1" in options(StepKind.MERGE, 10**9)
    assert "-XX:TieredStopAtLevel=1" in options(StepKind.RESYNC, 10**6 - 1)
    for rows in (None, 10**6):
        assert options(StepKind.VERIFY, rows) == "-Duser.timezone=UTC -XX:+UseParallelGC"


@pytest.mark.usefixtures("own_cache", "connections")
@pytest.mark.parametrize("kind", list(StepKind))
def test_every_step_has_its_job_and_the_zip_carries_what_it_imports(tmp_path: Path, kind: StepKind) -> None:
    submitted = submission(
        replace(StepHarness(tmp_path).definition, spark=Spark()), attempt(kind), "/s/step.json", None
    )
    assert Path(submitted.application).name == f"{kind}.py"
    names = zipfile.ZipFile(submitted.py_files).namelist()
    assert {f"spark_jobs/{kind}.py", "airflow_cdc_provider/core/decisions/steps.py"} <= set(names)
    assert not [name for name in names if "operators" in name or "/state/" in name]


@pytest.mark.usefixtures("own_cache", "connections")
def test_a_spark_connection_without_a_master_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark"}))
    with pytest.raises(CheckFailed, match=r"CON003.*spark_default"):
        submission(StepHarness(tmp_path).definition, attempt(StepKind.MERGE), "/s/step.json", None)


@pytest.mark.usefixtures("fake_spark", "connections")
@pytest.mark.parametrize("master", ["local[2]", "spark://127.0.0.1:7077"])
def test_jars_go_to_the_drivers_class_path_and_to_executors_only_where_there_are_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, master: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": master}))
    (tmp_path / "bin/spark-submit").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments\n')
    local = master.startswith("local")
    jars = (Path("/jars/a.jar"), Path("/jars/b.jar"))
    job = SparkJob(
        SparkSubmission(
            "cdc-shop-merge", "spark_default", local, "/x/merge.py", "/s/step.json", {}, jars, Path("/z.zip")
        )
    )
    assert job.run(tmp_path / "secrets") == ""
    job.close()
    lines = (tmp_path / "arguments").read_text().splitlines()
    options = dict(pairwise(lines))
    assert options["--master"] == master
    assert options["--deploy-mode"] == "client"
    assert options["--driver-class-path"] == "/jars/a.jar:/jars/b.jar"
    assert options.get("--jars") == (None if local else "/jars/a.jar,/jars/b.jar")
    assert options["--py-files"] == "/z.zip"
    assert lines[-2:] == ["/x/merge.py", "/s/step.json"]


@pytest.mark.usefixtures("fake_spark", "connections")
def test_a_worker_without_spark_submit_gets_an_error_with_the_package_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin/spark-submit").unlink()
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    job = SparkJob(SparkSubmission("n", "spark_default", True, "/x/merge.py", "/s/step.json", {}, (), Path("/z.zip")))
    with pytest.raises(CheckFailed, match=r"ENV006.*install pyspark"):
        job.run(tmp_path / "secrets")


def test_only_the_shell_jvm_and_driver_of_a_submission_count_as_its_processes() -> None:
    submitted = ["python", "/lib/spark_jobs/merge.py", "/log/steps/r/merge/1/step.json"]
    assert drivers._is_submission(submitted, "/log/steps/")
    assert drivers._is_submission(["java", "-cp", "x", *submitted[1:]], "/log/steps/")
    assert not drivers._is_submission(submitted, "/other/steps/")
    assert not drivers._is_submission(["vim", submitted[-1]], "/log/steps/")
    assert not drivers._is_submission(["tail", "-f", "x", submitted[-1]], "/log/steps/")
    assert not drivers._is_submission([*submitted, "--help"], "/log/steps/")


def test_two_processes_of_one_worker_have_the_same_process_space() -> None:
    script = "from airflow_cdc_provider.hooks.drivers import process_space; print(process_space())"
    with os.popen(f"{sys.executable} -c '{script}'") as other:
        assert other.read().strip() == drivers.process_space() != ""
