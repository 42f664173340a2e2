"""``assess`` never contradicts ``check``: on real servers, simulators and feeds, with every kind of target."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
import yaml

from tests.provider.command_line import CommandLine
from tests.provider.source_systems import (
    SLOW,
    SYSTEMS,
    Servers,
    SourceSystem,
    connection_variables,
    mariadb_connection,
    running,
)

pytestmark = pytest.mark.server

TARGETS = ("delta", "iceberg", "postgres", "mysql")
EVERY_RUN = {(name, "delta") for name in SYSTEMS.keys() - SLOW} | {("postgres", target) for target in TARGETS}


def pairs() -> Iterator[Any]:
    for name in SYSTEMS:
        for target in TARGETS:
            marks = () if (name, target) in EVERY_RUN else pytest.mark.nightly
            yield pytest.param(name, target, marks=marks, id=f"{name}-{target}")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with running(tmp_path_factory.mktemp("systems")) as servers:
        yield servers


def target_of(servers: Servers, kind: str, folder: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The keys of the YAML, and the connections."""
    if kind in ("delta", "iceberg"):
        return {"type": kind, "location": str(folder / "lake")}, {}
    if kind == "mysql":
        server = servers.mariadb
        with pymysql.connect(
            host=server.host, port=server.port, user=server.user, password=server.password
        ) as connection:
            connection.cursor().execute("CREATE DATABASE IF NOT EXISTS lake CHARACTER SET utf8mb4")
        connections = {"lake": mariadb_connection(server)}
    else:
        fields = servers.system("postgres").connections["shop_db"]
        with psycopg.connect(servers.postgres.dsn("shop"), autocommit=True) as connection:
            connection.execute(b"CREATE SCHEMA IF NOT EXISTS lake")
        connections = {"lake": fields}
    return {"type": kind, "connection": "lake", "schema": "lake"}, connections


def definition(system: SourceSystem, target: dict[str, Any], folder: Path) -> Path:
    body = {
        "name": "shop",
        "source": system.source,
        "target": target,
        "tables": system.rows(),
        "staging": {"location": str(folder / "staging")},
    }
    path = folder / "shop.yaml"
    path.write_text(yaml.safe_dump(body))
    return path


def named_in(problem: dict[str, Any], tables: set[str]) -> set[str]:
    """The tables whose names occur in what a problem states."""
    text = " ".join(problem[name] for name in ("what", "where", "found"))
    return {table for table in tables if re.search(rf"(?<![\w.]){re.escape(table)}(?!\w)", text)}


def codes(table: dict[str, Any]) -> set[str]:
    columns = [finding for column in table["columns"] for finding in column["findings"]]
    return {finding["code"] for finding in (*table["findings"], *columns)}


@pytest.mark.parametrize(("source", "target"), list(pairs()))
def test_a_problem_of_check_has_its_table_and_code_in_assess(
    servers: Servers, cdc: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, target: str
) -> None:
    system = servers.system(source)
    keys, connections = target_of(servers, target, tmp_path)
    for name, value in connection_variables({**system.connections, **connections}).items():
        monkeypatch.setenv(name, value)
    path = str(definition(system, keys, tmp_path))

    checked, assessed = cdc("check", path, "--json").body, cdc("assess", path, "--json").body

    assert checked["problems"], "the system has tables with problems"
    assert assessed["ready"] is checked["ready"] is False
    tables = {table["table"]: table for table in assessed["tables"]}
    assert tables.keys() >= {*system.tables, system.missing}
    for problem in checked["problems"]:
        named = named_in(problem, set(tables))
        for table in named:
            assert tables[table]["support"] in ("NO", "PARTIAL"), problem
            assert problem["code"] in codes(tables[table]), problem
        if not named:
            assert problem["code"] in {finding["code"] for finding in assessed["findings"]}, problem
    reported = {problem["code"] for problem in checked["problems"]}
    assert reported == {
        code
        for found in (*map(codes, tables.values()), {finding["code"] for finding in assessed["findings"]})
        for code in found
        if code
    }
    for table in tables.values():
        if table["support"] == "YES":
            assert not codes(table)
    with_note = {note.partition(" ")[0] for note in checked["unsupported_values"]}
    partial = {
        table["table"]
        for table in tables.values()
        if any(not finding["code"] for column in table["columns"] for finding in column["findings"])
    }
    assert with_note <= partial


@pytest.mark.parametrize(
    ("source", "left_out"), [("postgres", {"public.seen"}), ("jdbc_poll", {"public.seen"}), ("mysql", {"shop.seen"})]
)
def test_a_view_under_a_pattern_is_a_warning_of_check_and_a_no_of_assess(
    servers: Servers, cdc: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, left_out: set[str]
) -> None:
    system = servers.system(source)
    for name, value in connection_variables(system.connections).items():
        monkeypatch.setenv(name, value)
    keys, _ = target_of(servers, "delta", tmp_path)
    path = definition(replace(system, tables=(), rules=({"source": "*"},)), keys, tmp_path)
    checked, assessed = cdc("check", str(path), "--json").body, cdc("assess", str(path), "--json").body
    warned = {warning["where"] for warning in checked["warnings"] if warning["code"] == "SRC150"}
    found = {table["table"]: table for table in assessed["tables"]}
    assert warned >= left_out and all(found[name]["support"] == "NO" for name in warned)
    assert all("which is not copied" in found[name]["findings"][0]["reason"] for name in warned)
