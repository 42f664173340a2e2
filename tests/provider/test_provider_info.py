"""The metadata of the provider in Airflow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import airflow
import jsonschema
import pytest
from airflow.cli.cli_config import GroupCommand
from airflow.plugins_manager import AirflowPlugin

from airflow_cdc_provider.get_provider_info import get_provider_info
from airflow_cdc_provider.plugin import CdcPlugin

AIRFLOW = Path(airflow.__file__).parent
ROOT = Path(__file__).parents[2]
ENTRY_POINTS = """\
[apache_airflow_provider]
provider_info = airflow_cdc_provider.get_provider_info:get_provider_info

[airflow.plugins]
cdc = airflow_cdc_provider.plugin:CdcPlugin
"""


def schema(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((AIRFLOW / name).read_text())
    return loaded


def test_the_metadata_fits_the_schema_of_the_running_airflow() -> None:
    jsonschema.validate(get_provider_info(), schema("provider_info.schema.json"))


def test_the_metadata_fits_the_strict_schema_of_provider_files() -> None:
    released = {"versions": ["0.1.0"], "state": "ready", "source-date-epoch": 0}
    jsonschema.validate(get_provider_info() | released, schema("provider.yaml.schema.json"))


def test_a_misspelled_key_would_not_fit_the_strict_schema() -> None:
    released = {"versions": ["0.1.0"], "state": "ready", "source-date-epoch": 0}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(get_provider_info() | released | {"operator": []}, schema("provider.yaml.schema.json"))


def test_everything_that_the_metadata_names_exists() -> None:
    info = get_provider_info()
    for part in (*info["operators"], *info["hooks"]):
        for module in part["python-modules"]:
            import_module(module)
    for path in (*info["extra-links"], *info["cli"]):
        module, _, name = path.rpartition(".")
        assert callable(getattr(import_module(module), name))


def test_the_metadata_module_imports_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules); import airflow_cdc_provider.get_provider_info; "
        "print(sorted(m for m in set(sys.modules) - before if not m.startswith(('airflow_cdc_provider', '__future__'))"
        " and m.partition('.')[0] not in sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_command_group_is_called_cdc() -> None:
    path = get_provider_info()["cli"][0]
    module, _, name = path.rpartition(".")
    commands = getattr(import_module(module), name)()
    assert [(type(command), command.name) for command in commands] == [(GroupCommand, "cdc")]


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """An environment for processes in which the provider is installed."""
    site = tmp_path / "site"
    info = site / "airflow_cdc_provider-0.0.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: airflow-cdc-provider\nVersion: 0.0.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "AIRFLOW_HOME": str(tmp_path / "home")}


def airflow_json(environment: dict[str, str], *arguments: str) -> Any:
    command = [sys.executable, "-m", "airflow", *arguments, "--output", "json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("[")))


def test_airflow_lists_the_provider(installed: dict[str, str]) -> None:
    listed = airflow_json(installed, "providers", "list")
    descriptions = [row["description"] for row in listed if row["package_name"] == "airflow-cdc-provider"]
    assert descriptions == [get_provider_info()["description"].rstrip(".")]


def test_airflow_lists_the_plugin(installed: dict[str, str]) -> None:
    listed = airflow_json(installed, "plugins")
    assert [row["name"] for row in listed if "cdc" in row["name"]] == ["cdc"]


def test_the_entry_points_are_those_of_the_package() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    written = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in project.items()]
    assert "\n".join(written) == ENTRY_POINTS


def test_a_process_that_serves_no_page_loads_the_plugin_without_a_web_framework() -> None:
    """As every task and the DAG processor do."""
    program = (
        "import sys; from airflow_cdc_provider.plugin import CdcPlugin; CdcPlugin.validate(); "
        "print(sorted({'fastapi', 'starlette', 'airflow_cdc_provider.ui.app'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"


def test_the_plugin_is_valid_and_has_the_links_of_tasks() -> None:
    loaded = EntryPoint("cdc", "airflow_cdc_provider.plugin:CdcPlugin", "airflow.plugins").load()
    assert loaded is CdcPlugin
    assert [link.name for link in CdcPlugin.operator_extra_links] == ["Replicator", "Spark history"]
    assert {base.__name__ for base in CdcPlugin.__mro__} >= {AirflowPlugin.__name__}
    CdcPlugin.validate()


def test_the_extra_links_of_the_metadata_are_those_of_the_operators() -> None:
    from airflow_cdc_provider.operators.spark import CdcSparkOperator

    links = [f"{type(link).__module__}.{type(link).__name__}" for link in CdcSparkOperator.operator_extra_links]
    assert links == get_provider_info()["extra-links"]
