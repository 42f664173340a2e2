"""DAGs from YAML files, as Airflow reads them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG, Asset, AssetAlias, AssetAny, AssetOrTimeSchedule, CronDataIntervalTimetable
from airflow.serialization.serialized_objects import DagSerialization

from airflow_cdc_provider.core.errors import DefinitionInvalid
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.dag_plan import plan
from airflow_cdc_provider.factory import build_dag
from airflow_cdc_provider.loader import load_file

ROOT = Path(__file__).parents[2]
DAGS = ROOT / "dags"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the DAGs folder with the shop."""
    return Path(shutil.copytree(DAGS, tmp_path / "dags", ignore=shutil.ignore_patterns("__pycache__")))


def add(folder: Path, name: str, text: str) -> Path:
    (folder / "replicators" / f"{name}.yaml").write_text(text)
    return Path(shutil.copy(folder / "shop.py", folder / f"{name}.py"))


def shop() -> DAG:
    return build_dag(DAGS / "shop.py")


def test_the_dag_has_the_tasks_and_edges_of_the_plan() -> None:
    dag, expected = shop(), plan(load_file(DAGS / "replicators" / "shop.yaml").definition)
    assert {t.task_id: t.upstream_task_ids for t in dag.tasks} == {t.id: set(t.after) for t in expected.tasks}
    for task in expected.tasks:
        made = dag.get_task(task.id)
        assert made.trigger_rule.value == task.trigger.value
        assert (made.retries, made.max_active_tis_per_dag, made.owner) == (2, task.max_active, "data-platform")
        assert made.doc_md == task.doc
        assert (made.retry_delay, made.max_retry_delay) == (timedelta(seconds=30), timedelta(minutes=10))
        assert getattr(made, "step", "") == task.step
    assert dag.get_task("reconcile.resync").task_group.group_id == "reconcile"  # type: ignore[union-attr]


def test_a_cron_expression_becomes_data_intervals_without_catching_up() -> None:
    dag = shop()
    assert isinstance(dag.timetable, CronDataIntervalTimetable)
    assert (dag.catchup, dag.max_active_runs, dag.allowed_run_types) == (False, 2, None)
    assert dag.rerun_with_latest_version is True, "a cleared run reads the newest YAML"
    assert dag.tags == {"cdc", "cdc-replicator", "shop"}


def test_without_a_schedule_the_dag_runs_by_hand_only(folder: Path) -> None:
    text = (folder / "replicators" / "shop.yaml").read_text()
    file = add(folder, "byhand", text.replace('schedule: "*/5 * * * *"\n', "").replace("name: shop", "name: byhand"))
    assert build_dag(file).schedule is None


@pytest.mark.parametrize("timed", [True, False])
def test_an_update_of_an_asset_starts_a_run_with_or_without_a_schedule(folder: Path, timed: bool) -> None:
    text = (folder / "replicators" / "shop.yaml").read_text().replace("name: shop", "name: triggered")
    schedule = 'schedule: "*/5 * * * *"\n'
    dag = build_dag(
        add(folder, "triggered", text.replace(schedule, schedule * timed + "triggered_by: [erp loaded, x]\n"))
    )
    assert isinstance(dag.timetable, AssetOrTimeSchedule) == timed
    assert dag.timetable.asset_condition == AssetAny(Asset("erp loaded"), Asset("x"))
    assert "`erp loaded` is updated" in (dag.doc_md or "")
    read = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    assert type(read.timetable).__name__ == ("AssetOrTimeSchedule" if timed else "AssetTriggeredTimetable")
    assert [asset.name for asset in read.timetable.asset_condition.objects] == ["erp loaded", "x"]


def test_every_task_shows_the_whole_definition() -> None:
    plain = to_plain(load_file(DAGS / "replicators" / "shop.yaml").definition)
    for task in shop().tasks:
        assert getattr(task, "definition", None) == plain
        assert "definition" in task.template_fields


def test_the_last_tasks_report_changed_tables_and_the_run_ends_as_close_window_does() -> None:
    alias = [AssetAlias("cdc/shop")]
    outlets = {task.task_id: task.outlets for task in shop().tasks if task.outlets}
    assert outlets == {"close_window": alias, "emit_asset_events": alias}
    assert [task.task_id for task in shop().tasks if task.is_teardown] == ["emit_asset_events"]


def test_airflow_finds_the_dag_in_its_file(folder: Path) -> None:
    bag = DagBag(dag_folder=folder)
    assert bag.import_errors == {}
    found = {dag_id: dag.fileloc for dag_id, dag in bag.dags.items()}
    assert found == {"shop": str(folder / "shop.py"), "cdc_monitor": str(folder / "cdc_monitor.py")}


def test_a_broken_file_is_an_import_error_with_line_and_other_dags_load(folder: Path) -> None:
    broken = add(folder, "broken", "name: broken\ntabels: []\n")
    absent = folder / "absent.py"
    shutil.copy(folder / "shop.py", absent)
    bag = DagBag(dag_folder=folder)
    assert "shop" in bag.dags
    errors = {Path(file).name: text for file, text in bag.import_errors.items()}
    assert sorted(errors) == [absent.name, broken.name]
    assert f"{folder}/replicators/broken.yaml:2:1" in errors["broken.py"]
    assert "'tables'" in errors["broken.py"]
    assert f"{folder}/replicators/absent.yaml" in errors["absent.py"]


def test_a_replicator_must_have_the_name_of_its_file(folder: Path) -> None:
    file = add(folder, "copy_of_shop", (folder / "replicators" / "shop.yaml").read_text())
    with pytest.raises(DefinitionInvalid) as caught:
        build_dag(file)
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("DEF014", f"{folder}/replicators/copy_of_shop.yaml:1")


def test_the_import_error_names_the_secret_key_and_not_the_secret(folder: Path) -> None:
    file = add(folder, "leak", "name: leak\nsource: {type: postgres, password: hunter2}\n")
    with pytest.raises(DefinitionInvalid) as caught:
        build_dag(file)
    assert "'password'" in str(caught.value)
    assert "hunter2" not in str(caught.value)


SERIALIZE = """
import json, sys
from airflow.serialization.serialized_objects import DagSerialization
from airflow_cdc_provider.factory import build_dag
print(json.dumps(DagSerialization.to_dict(build_dag(sys.argv[1])), sort_keys=True))
print(sorted(name for name in sys.modules if name.split(".")[0] in
             ("pyspark", "py4j", "delta", "deltalake", "psycopg", "pyarrow", "pandas")))
"""


def test_the_same_yaml_gives_the_same_dag_in_every_process_and_loads_no_vendor_library() -> None:
    outputs = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", SERIALIZE, str(DAGS / "shop.py")],
            env={**os.environ, "PYTHONHASHSEED": seed, "AIRFLOW_CONN_SHOP_DB": "postgres://me:hunter2@db/shop"},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.append(done.stdout.splitlines()[-2:])
    assert outputs[0] == outputs[1]
    assert outputs[0][1] == "[]"
    assert "hunter2" not in outputs[0][0]


def test_the_dag_can_be_serialized_and_deserialized() -> None:
    serialized = json.loads(json.dumps(DagSerialization.to_dict(shop())))
    assert DagSerialization.from_dict(serialized).task_ids == shop().task_ids


def test_parsing_opens_no_connection_no_variable_no_socket_and_no_other_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    watching = [True]

    def audit(event: str, arguments: tuple[object, ...]) -> None:
        if watching and (event.startswith(("socket.", "sqlite3.", "subprocess.")) or event == "open"):
            seen.append(f"{event} {arguments[0] if arguments else ''}")

    build_dag(folder / "shop.py")
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", "not even a connection")
    sys.addaudithook(audit)
    try:
        build_dag(folder / "shop.py")
    finally:
        watching.clear()
    assert seen == [f"open {folder}/replicators/shop.yaml"]


def test_five_hundred_replicators_take_under_thirty_milliseconds_each(folder: Path) -> None:
    text = (folder / "replicators" / "shop.yaml").read_text()
    files = [add(folder, f"r{n}", text.replace("name: shop", f"name: r{n}")) for n in range(500)]
    start = time.process_time()
    for file in files:
        build_dag(file)
    assert (time.process_time() - start) / len(files) < 0.030


def test_the_documentation_of_the_dag_shows_texts_as_text(folder: Path) -> None:
    text = (folder / "replicators" / "shop.yaml").read_text()
    evil = text.replace("public.customers", "'public.<script>alert(1)</script>`|x'").replace("name: shop", "name: evil")
    doc = build_dag(add(folder, "evil", evil)).doc_md
    assert doc is not None
    assert "| `public.<script>alert(1)</script>'\\|x` | default name | all | all | hard |" in doc
    assert "| `public.order_lines` | default name | all except `internal_note` | all | hard |" in doc
    assert "retained for 7d after" in doc


def test_a_template_in_the_yaml_is_not_rendered_and_has_a_warning(folder: Path) -> None:
    text = (folder / "replicators" / "shop.yaml").read_text()
    odd = text.replace("/data/lake/shop", '"/data/{{params.x}}"').replace("name: shop", "name: odd")
    dag = build_dag(add(folder, "odd", odd))
    assert dag.doc_md is not None
    assert "Warning: `DEFW01" in dag.doc_md
    definition = getattr(dag.get_task("merge"), "definition", {})
    assert definition["target"]["location"] == "/data/{{params.x}}"
