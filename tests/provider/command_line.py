"""``airflow cdc …`` through the parser of Airflow, on a replicator without servers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from airflow import settings
from airflow.cli.cli_parser import _add_command

from airflow_cdc_provider import connectors, targets
from airflow_cdc_provider.cli.commands import get_cli_commands
from airflow_cdc_provider.state.store import StateStore
from tests.provider.run_harness import RunHarness

YAML = """\
name: shop
source: {{type: file, connection: shop_db, path: {folder}/source.json}}
target: {{type: files, location: {folder}/lake}}
tables:
  - source: public.*
staging: {{location: {folder}/staging}}
"""


@dataclass
class CommandResult:
    code: int
    out: str
    err: str

    @property
    def body(self) -> Any:
        return json.loads(self.out)


CommandLine = Callable[..., CommandResult]


def command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """Runs ``airflow cdc`` with arguments, in an Airflow home and a DAGs folder of the test."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(tmp_path / "dags"))
    monkeypatch.setattr(settings, "DAGS_FOLDER", str(tmp_path / "dags"))  # which Airflow reads once per process
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", '{"conn_type": "postgres", "password": "geheim-geheim"}')
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[2]"}')
    monkeypatch.setitem(connectors.SOURCES, "file", "tests.provider.run_harness:RegisteredSource")
    monkeypatch.setitem(connectors.OPTIONS, "file", "tests.provider.run_harness:FileOptions")
    monkeypatch.setitem(targets.TARGETS, "files", "tests.provider.run_harness:LoggedFileTarget")
    monkeypatch.setitem(targets.OPTIONS, "files", "tests.provider.run_harness:LakeOptions")
    monkeypatch.setitem(targets.NAMING, "files", "tests.provider.run_harness:target_name")

    def call(*arguments: str) -> CommandResult:
        parser = argparse.ArgumentParser(prog="airflow")
        (group,) = get_cli_commands()
        _add_command(parser.add_subparsers(dest="subcommand"), group)
        with pytest.raises(SystemExit) as ended:
            args = parser.parse_args(["cdc", *arguments])
            args.func(args)
        output = capsys.readouterr()
        return CommandResult(int(ended.value.code or 0), output.out, output.err)

    return call


def run_harness(tmp_path: Path) -> RunHarness:
    """A replicator of two tables that has not run yet; its state store is the one the command line finds."""
    folder = tmp_path / "dags" / "replicators"
    folder.mkdir(parents=True)
    (folder / "shop.yaml").write_text(YAML.format(folder=tmp_path))
    (tmp_path / "cdc").mkdir()
    (tmp_path / "state.db").symlink_to(tmp_path / "cdc" / "state.db")
    harness = RunHarness(tmp_path)
    harness.state = StateStore(f"sqlite:///{tmp_path}/cdc/state.db")
    harness.state.owner()
    return harness


def replicated(harness: RunHarness) -> RunHarness:
    assert as_listed(harness).run("r1").problems == ()
    return harness


def as_listed(harness: RunHarness) -> RunHarness:
    """With the source of the YAML file."""
    options = {"path": str(harness.source.path)}
    source = replace(harness.definition.source, connection="shop_db", options=options)
    harness.definition = replace(harness.definition, source=source)
    return harness
