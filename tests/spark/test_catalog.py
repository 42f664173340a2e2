"""Named tables on a real metastore: Hive's, in a Derby database of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.loader.spark_conf import expected_format, refusal_reason
from tests.spark.named_tables import named
from tests.spark.replicator import Replicator, by_table

pytestmark = [pytest.mark.jvm, pytest.mark.server]


def metastore(folder: Path) -> dict[str, str]:
    """The settings of a user under ``spark.conf``."""
    return {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
        "spark.hadoop.hive.metastore.schema.verification": "false",
    }


@pytest.mark.nightly
def test_a_named_table_is_read_by_its_name_in_other_applications_and_a_taken_name_is_left_unchanged(
    tmp_path: Path, database: psycopg.Connection[object], connection: ConnectionInfo
) -> None:
    for name in ("a", "b"):
        database.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, note text)")
        database.execute(f"INSERT INTO {name} VALUES (1, 'one'), (2, 'two')")
    publication = f"nam{abs(hash(str(tmp_path))) % 10**9}"
    database.execute(f"CREATE PUBLICATION {publication} FOR TABLE a, b")
    replicator = named(Replicator(tmp_path, publication, connection, [TableRule("public.a"), TableRule("public.b")]))
    conf = metastore(tmp_path)
    assert [refusal_reason(key) or expected_format(key, conf[key]) for key in conf] == [""] * len(conf), (
        "the YAML may carry them"
    )
    lo = dict(replicator.source.open_stream(["public.a", "public.b"]))

    step = replicator.step(StepKind.SNAPSHOT, replicator.tasks("public.a"))
    process = replicator.submit(step, conf=conf)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert by_table(replicator.result(step))["public.a"].outcome is Outcome.DONE

    database.execute("ALTER TABLE a ADD COLUMN more int DEFAULT 7")
    database.execute("UPDATE a SET note = 'zwei' WHERE id = 2")
    setup_file = tmp_path / "setup.json"
    setup_file.touch(0o600)
    setup = {"folder": str(tmp_path), "name": publication, "connection": to_plain(connection), "lo": lo, "conf": conf}
    setup_file.write_text(json.dumps(setup))
    root = str(Path(__file__).parents[2])
    reader = subprocess.run(
        [sys.executable, "-m", "tests.spark.named_tables", str(setup_file)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert reader.returncode == 0, reader.stdout
    report = json.loads(reader.stdout.strip().splitlines()[-1])

    changed = [{"id": 1, "note": "one", "more": 7}, {"id": 2, "note": "zwei", "more": 7}]
    assert report["copied"] == [{"id": 1, "note": "one"}, {"id": 2, "note": "two"}]
    assert report["streamed"] == changed
    assert report["copied again"] == changed
    assert report["taken"] == ["blocked", "TGT041", f"{tmp_path}/elsewhere"]
    assert report["taken rows"] == 7
    assert report["absent"] == ["blocked", "TGT040", "catalog implementation hive"]
    assert report["written"] is False
