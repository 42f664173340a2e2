"""An operator at the command line: ``airflow cdc …`` through Airflow's own parser, over a small world."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from airflow.cli.cli_parser import _add_command

from airflow_cdc_provider import connectors, targets
from airflow_cdc_provider.cli.commands import get_cli_commands
from airflow_cdc_provider.state.store import StateStore
from tests.provider.small_world import World

YAML = """\
name: shop
source: {{type: file, connection: shop_db, path: {folder}/source.json}}
target: {{type: files, location: {folder}/lake}}
tables:
  - source: public.*
staging: {{location: {folder}/staging}}
"""


@dataclass
class Said:
    code: int
    out: str
    err: str

    @property
    def body(self) -> Any:
        return json.loads(self.out)


Type = Callable[..., Said]


def command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Type:
    """``airflow cdc`` with arguments; what it said. Its Airflow home and DAGs folder are the test's own."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(tmp_path / "dags"))
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", '{"conn_type": "postgres", "password": "geheim-geheim"}')
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[2]"}')
    monkeypatch.setitem(connectors.SOURCES, "file", "tests.provider.small_world:RegisteredSource")
    monkeypatch.setitem(connectors.OPTIONS, "file", "tests.provider.small_world:FileOptions")
    monkeypatch.setitem(targets.TARGETS, "files", "tests.provider.small_world:LakeOfFiles")
    monkeypatch.setitem(targets.OPTIONS, "files", "tests.provider.small_world:LakeOptions")
    monkeypatch.setitem(targets.NAMING, "files", "tests.provider.small_world:target_name")

    def call(*arguments: str) -> Said:
        parser = argparse.ArgumentParser(prog="airflow")
        (group,) = get_cli_commands()
        _add_command(parser.add_subparsers(dest="subcommand"), group)
        with pytest.raises(SystemExit) as ended:
            args = parser.parse_args(["cdc", *arguments])
            args.func(args)
        said = capsys.readouterr()
        return Said(int(ended.value.code or 0), said.out, said.err)

    return call


def small_world(tmp_path: Path) -> World:
    """A replicator of two tables whose first run is done; its state store is the one the command line finds."""
    folder = tmp_path / "dags" / "replicators"
    folder.mkdir(parents=True)
    (folder / "shop.yaml").write_text(YAML.format(folder=tmp_path))
    (tmp_path / "cdc").mkdir()
    (tmp_path / "state.db").symlink_to(tmp_path / "cdc" / "state.db")
    world = World(tmp_path)
    world.state = StateStore(f"sqlite:///{tmp_path}/cdc/state.db")
    world.state.owner()
    return world


def replicated(world: World) -> World:
    source = replace(world.definition.source, connection="shop_db")
    world.definition = replace(world.definition, source=source)
    assert world.run("r1").problems == ()
    return world
