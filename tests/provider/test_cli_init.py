"""``airflow cdc init``: the YAML that it writes is valid, and passes ``check`` with a ready source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType
from airflow_cdc_provider.loader import load_text
from airflow_cdc_provider.loader.draft import scalar
from tests.provider.command_line import CommandLine, CommandResult
from tests.provider.run_harness import FileSource, RunHarness, schema
from tests.provider.source_systems import SLOW, SYSTEMS, Servers, SourceSystem, connection_variables, running

PROPOSED = {"publication", "timestamp_column", "timestamp_columns", "key_audit", "objects"}
"""Options that ``init`` finds itself if it can."""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with running(tmp_path_factory.mktemp("systems")) as servers:
        yield servers


def init_file(cdc: CommandLine, harness: RunHarness, *arguments: str) -> CommandResult:
    path = f"path={harness.source.path}"
    return cdc(
        "init", "--source-type", "file", "--connection", "shop_db", "--option", path,
        "--target-type", "files", "--location", f"{harness.folder}/lake", "--staging", f"{harness.folder}/staging",
        *arguments,
    )  # fmt: skip


def arguments_of(system: SourceSystem, given: set[str], folder: Path) -> list[str]:
    """``given``: the options that the user gives."""
    listed = [f"--option={key}={scalar(value)}" for key, value in system.source.items() if key in given]
    connection = system.source.get("connection")
    return [
        "init", "--source-type", system.source["type"], *(["--connection", connection] if connection else []), *listed,
        "--name", "fresh", "--location", str(folder / "lake"), "--staging", str(folder / "staging"),
    ]  # fmt: skip


@pytest.mark.server
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly if name in SLOW else ()) for name in SYSTEMS]
)
def test_the_yaml_passes_validate_and_check(
    servers: Servers, cdc: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Tables that cannot be copied are comments, and columns that cannot be copied are excluded."""
    system, file = servers.system(name), tmp_path / "dags/replicators/fresh.yaml"
    file.parent.mkdir(parents=True)
    for variable, value in connection_variables(system.connections).items():
        monkeypatch.setenv(variable, value)
    found_by_init = PROPOSED - {"publication"}
    given = {key for key in system.source if key not in {"type", "connection"} | found_by_init}
    patterns = ["--tables", "Account", "Contact"] if name == "salesforce_poll" else []
    written = cdc(*arguments_of(system, given, tmp_path), *patterns, "--file", str(file))
    assert written.code == 0, written.err
    text = file.read_text()

    assert cdc("validate", str(file)).code == 0
    checked = cdc("check", "fresh", "--json")
    assert (checked.code, checked.body.get("problems")) == (0, None), text
    assert set(checked.body["tables"]) == system.good
    commented = {line.partition("# - source: ")[2] for line in text.splitlines() if "# - source: " in line}
    assert commented >= set(system.tables) - system.good
    assert cdc("assess", "fresh", "--json").body["ready"]


@pytest.mark.server
def test_a_postgresql_draft_has_keys_sizes_and_reasons(
    servers: Servers, cdc: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = servers.system("postgres")
    for variable, value in connection_variables(system.connections).items():
        monkeypatch.setenv(variable, value)
    text = cdc(*arguments_of(system, {"publication"}, tmp_path)).out
    assert re.search(r"  # 5,000 rows, \d+ KiB, key \(id\), first copy about 1 s\n  - source: public.good\n", text)
    assert "REPLICA IDENTITY FULL;\n  # - source: public.keyless\n" in text
    assert "  - source: public.odd\n    columns: {exclude: [_cdc_note, name]}\n" in text
    assert "may hold" not in text and "infinite times in until" in text
    unready = cdc(*arguments_of(system, set(), tmp_path))
    assert "publication: cdc_fresh" in unready.out and '#   CREATE PUBLICATION "cdc_fresh"' in unready.out
    statement = next(line for line in unready.out.splitlines() if "CREATE PUBLICATION" in line)
    assert '"public"."odd"' in statement and "fleeting" not in statement
    assert "SRC004" in unready.err, "the problems of the source are also on stderr"
    assert load_text(unready.out.encode(), "fresh.yaml")


@pytest.mark.nightly
@pytest.mark.server
def test_a_topic_without_messages_gets_a_template(
    servers: Servers, cdc: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = servers.system("kafka")
    for variable, value in connection_variables(system.connections).items():
        monkeypatch.setenv(variable, value)
    arguments = arguments_of(system, {"format"}, tmp_path)
    text = cdc(*arguments, "--option=topics=[p.empty]", "--tables", "d.expected").out
    assert "A feed shows its tables, keys and columns in its messages only" in text
    assert [rule.source for rule in load_text(text.encode(), "fresh.yaml").definition.tables] == ["d.expected"]


def test_a_file_is_not_overwritten_without_a_flag(cdc: CommandLine, harness: RunHarness) -> None:
    file = harness.folder / "new.yaml"
    assert init_file(cdc, harness, "--file", str(file)).code == 0
    file.write_text("mine")
    refused = init_file(cdc, harness, "--file", str(file), "--json")
    assert (refused.code, refused.body["problems"][0]["code"]) == (64, "CLI023")
    assert file.read_text() == "mine"
    assert init_file(cdc, harness, "--file", str(harness.folder), "--overwrite").code == 64
    assert init_file(cdc, harness, "--file", str(harness.folder / "absent/new.yaml")).code == 64
    assert init_file(cdc, harness, "--file", str(file), "--overwrite").code == 0
    assert load_text(file.read_bytes(), "new.yaml").definition.name == "shop"


def test_the_yaml_goes_to_stdout_alone(cdc: CommandLine, harness: RunHarness) -> None:
    definition = load_text(init_file(cdc, harness).out.encode(), "shop.yaml").definition
    assert [rule.source for rule in definition.tables] == ["public.a", "public.b"]
    assert (definition.name, definition.source.connection) == ("shop", "shop_db")
    body = init_file(cdc, harness, "--output", "json").body
    assert load_text(body["yaml"].encode(), "shop.yaml").definition == definition
    assert [table["table"] for table in body["tables"]] == ["public.a", "public.b"]


def test_tables_are_chosen_by_patterns(cdc: CommandLine, harness: RunHarness) -> None:
    text = init_file(cdc, harness, "--tables", "public.a", "other.*", "public.a*").out
    assert text == "", "a pattern that matches nothing is an error of the user"
    result = init_file(cdc, harness, "--tables", "*.b", "--json")
    assert [table["table"] for table in result.body["tables"]] == ["public.b"]
    assert init_file(cdc, harness, "--tables", "public.x", "--json").code == 78


def test_columns_are_excluded_only_if_that_solves_the_problem(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = replace(schema("public.a"), columns=(*schema("public.a").columns, Column("x", LogicalType(Kind.JSON))))
    harness.source.write(tables=[to_plain(wide), to_plain(schema("public.b"))])

    def check(self: object, tables: list[object]) -> list[Problem]:
        unusable = [t for t in tables if t.table == "public.a" and "x" in t.schema.names]  # type: ignore[attr-defined]
        return [Problem("SRC118", "a type", do="exclude it", table=t.table, columns=("x",)) for t in unusable]  # type: ignore[attr-defined]

    monkeypatch.setattr(FileSource, "check", check)
    assert "  - source: public.a\n    columns: {exclude: [x]}\n" in init_file(cdc, harness).out
    monkeypatch.setattr(
        FileSource, "check", lambda self, tables: [Problem("SRC118", "a type", table="public.a", columns=("id",))]
    )
    assert "  # - source: public.a\n" in init_file(cdc, harness).out


def test_a_source_without_tables_gets_a_template(cdc: CommandLine, harness: RunHarness) -> None:
    harness.source.write(tables=[])
    text = init_file(cdc, harness).out
    assert "The source shows no tables now" in text
    assert [rule.source for rule in load_text(text.encode(), "shop.yaml").definition.tables] == ["*"]


def test_a_source_that_does_not_answer_writes_nothing(cdc: CommandLine, harness: RunHarness) -> None:
    harness.source.write(up=False)
    file = harness.folder / "new.yaml"
    result = init_file(cdc, harness, "--file", str(file), "--json")
    assert (result.code, result.body["problems"][0]["code"], file.exists()) == (78, "SRC001", False)


def test_a_format_is_no_source_type(cdc: CommandLine) -> None:
    result = cdc("init", "--source-type", "debezium", "--connection", "broker", "--json")
    assert result.code == 64
    assert "--source-type kafka --option format=debezium" in result.body["problems"][0]["do"]


def test_a_missing_option_is_named(cdc: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_POLLED", '{"conn_type": "postgres", "host": "127.0.0.1"}')
    result = cdc("init", "--source-type", "jdbc_poll", "--connection", "polled", "--json")
    assert result.code == 78
    assert "`driver`" in result.body["problems"][0]["what"]
    refused = cdc("init", "--source-type", "jdbc_poll", "--connection", "polled", "--option", "driver", "--json")
    assert (refused.code, refused.body["problems"][0]["code"]) == (64, "CLI019")


def test_no_secret_of_a_connection_is_in_the_yaml(cdc: CommandLine, harness: RunHarness) -> None:
    result = init_file(cdc, harness, "--json")
    assert "geheim" not in result.out + result.err


def test_values_keep_their_types_in_the_yaml() -> None:
    for value in ("yes", "12", "1e3", "null", "a: b", "*", "# x", "", " x", "\U0001f600\x85", "7d", 5, True, ["a", 1]):
        assert yaml.safe_load(scalar(value)) == value
