"""Replicators in several Dag bundles, on the command line and in Airflow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.bundles.base import BaseDagBundle
from airflow.dag_processing.dagbag import DagBag

from airflow_cdc_provider.cli.completers import replicator_names
from tests.provider.command_line import CommandLine
from tests.provider.run_harness import RunHarness

LOCAL = "airflow.dag_processing.bundles.local.LocalDagBundle"
DAG = "from airflow_cdc_provider.factory import build_dag\n\ndag = build_dag(__file__)  # an Airflow DAG\n"
YAML = """\
name: {name}
source: {{type: postgres, connection: {name}_db, publication: cdc}}
target: {{type: delta, location: {folder}/lake/{name}}}
tables: [{{source: public.orders}}]
staging: {{location: {folder}/staging}}
"""


class RemoteBundle(BaseDagBundle):
    """A repository that has not been cloned. ``initialize`` would do it."""

    def __init__(self, *, error: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if error:
            raise RuntimeError(error)

    @property
    def path(self) -> Path:
        return self.base_dir / "tracking_repo"

    def initialize(self) -> None:
        raise AssertionError("the bundle was cloned")

    def refresh(self) -> None:
        raise AssertionError("the bundle was fetched")

    def get_current_version(self) -> None:
        return None


REMOTE = f"{__name__}.RemoteBundle"


def write(folder: Path, bundle: str, name: str) -> None:
    replicators = folder / bundle / "replicators"
    replicators.mkdir(parents=True, exist_ok=True)
    (folder / bundle / f"{name}.py").write_text(DAG)
    (replicators / f"{name}.yaml").write_text(YAML.format(name=name, folder=folder / bundle))


def local(folder: Path, *bundles: str) -> list[dict[str, Any]]:
    return [{"name": one, "classpath": LOCAL, "kwargs": {"path": str(folder / one)}} for one in bundles]


def remote(name: str, **kwargs: str) -> dict[str, Any]:
    return {"name": name, "classpath": REMOTE, "kwargs": kwargs}


@pytest.fixture
def configure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH", str(tmp_path / "bundles"))

    def configured(*bundles: dict[str, Any]) -> None:
        monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST", json.dumps(bundles))

    return configured


def airflow_cdc(home: Path, *arguments: str) -> Any:
    """The real command, as in a shell. Its output is JSON alone."""
    environment = {**os.environ, "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "True"}
    program = "import sys; from airflow.__main__ import main; sys.argv[0] = 'airflow'; main()"
    command = [sys.executable, "-c", program, "cdc", *arguments, "--json"]
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def test_the_command_line_finds_the_replicators_of_all_bundles(tmp_path: Path, configure: Any) -> None:
    write(tmp_path, "sales", "shop")
    write(tmp_path, "finance", "ledger")
    configure(*local(tmp_path, "sales", "finance"))
    status = airflow_cdc(tmp_path / "home", "status")
    assert (status["replicators"], status["unsearched_bundles"]) == (["ledger", "shop"], [])
    assert airflow_cdc(tmp_path / "home", "status", "ledger")["replicators"] == ["ledger"]


def test_airflow_builds_the_dags_of_all_bundles(tmp_path: Path) -> None:
    write(tmp_path, "sales", "shop")
    write(tmp_path, "finance", "ledger")
    for bundle, name in (("sales", "shop"), ("finance", "ledger")):
        bag = DagBag(str(tmp_path / bundle), bundle_path=tmp_path / bundle, bundle_name=bundle)
        assert (list(bag.dags), bag.import_errors) == ([name], {})


def test_the_shell_completes_the_replicators_of_all_bundles(cdc: CommandLine, tmp_path: Path, configure: Any) -> None:
    write(tmp_path, "sales", "shop")
    write(tmp_path, "finance", "ledger")
    configure(*local(tmp_path, "sales", "finance"), remote("git"))
    assert replicator_names(None) == ["ledger", "shop"]  # type: ignore[arg-type]


def test_a_name_in_two_bundles_is_an_error_that_names_both_files(
    cdc: CommandLine, tmp_path: Path, configure: Any
) -> None:
    write(tmp_path, "sales", "shop")
    write(tmp_path, "finance", "shop")
    write(tmp_path, "finance", "ledger")
    configure(*local(tmp_path, "sales", "finance"))
    result = cdc("plan", "shop", "--json")
    assert [problem["code"] for problem in result.body["problems"]] == ["DEF014", "DEF014"]
    texts = [problem["where"] + problem["found"] for problem in result.body["problems"]]
    assert all(f"{tmp_path}/{one}/replicators/shop.yaml:1" in text for one in ("sales", "finance") for text in texts)
    assert cdc("status", "--json").body["replicators"] == ["ledger"]


def test_a_folder_that_two_bundles_have_is_no_clash(cdc: CommandLine, tmp_path: Path, configure: Any) -> None:
    write(tmp_path, "sales", "shop")
    (tmp_path / "again").symlink_to(tmp_path / "sales")
    configure(*local(tmp_path, "sales", "again"))
    assert cdc("status", "--json").body["replicators"] == ["shop"]


def test_a_bundle_that_is_not_on_the_host_is_named_and_not_fetched(
    cdc: CommandLine, tmp_path: Path, configure: Any
) -> None:
    write(tmp_path, "sales", "shop")
    configure(*local(tmp_path, "sales"), remote("git"), remote("broken", error="t0ken"))
    result = cdc("status")
    assert "Dag bundle git was not searched: it is not on this host" in result.out
    assert "Dag bundle broken was not searched: it cannot be opened (RuntimeError)" in result.out
    assert "t0ken" not in result.out + result.err
    [problem] = cdc("plan", "ledger", "--json").body["problems"]
    assert problem["code"] == "CLI001" and "git was not searched" in problem["found"]
    assert str(tmp_path / "sales/replicators") in problem["where"] and "path of its YAML" in problem["do"]


def test_what_another_process_has_checked_out_is_used(cdc: CommandLine, tmp_path: Path, configure: Any) -> None:
    write(tmp_path / "bundles/git", "tracking_repo", "ledger")
    configure(remote("git"))
    assert cdc("status", "--json").body["replicators"] == ["ledger"]


def test_a_replicator_that_ran_is_not_called_deleted_while_a_bundle_is_missing(
    cdc: CommandLine, harness: RunHarness, tmp_path: Path, configure: Any
) -> None:
    assert harness.run("r1").problems == ()
    configure(*local(tmp_path, "sales"))
    (tmp_path / "sales").mkdir()
    assert "airflow cdc delete shop" in cdc("status").out
    configure(remote("git"))
    shown = cdc("status").out
    assert "shop: has no valid YAML on this host" in shown and "airflow cdc delete" not in shown
