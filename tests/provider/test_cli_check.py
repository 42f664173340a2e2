"""``airflow cdc check`` through the parser of Airflow."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from airflow_cdc_provider.cli import check
from airflow_cdc_provider.connectors.sources.sqlserver.check import never_run
from airflow_cdc_provider.core.connections.tls import not_verified
from airflow_cdc_provider.core.errors import Problem, SourceUnavailable
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType
from tests.provider.command_line import CommandLine
from tests.provider.file_target import FileTarget
from tests.provider.run_harness import FileSource, RunHarness, schema


def test_check_reports_a_ready_replicator(cdc: CommandLine, harness: RunHarness) -> None:
    result = cdc("check", "shop")
    assert result.code == 0 and result.out.splitlines() == [
        "note: shop cannot detect what is not in its file",
        "shop is ready: 2 tables",
    ]
    assert cdc("check", "shop", "--json").body["undetected_changes"] == "what is not in its file"


def test_check_lists_columns_with_values_that_the_copy_cannot_represent(cdc: CommandLine, harness: RunHarness) -> None:
    table = schema("public.a")
    dated = replace(table, columns=(*table.columns, Column("until", LogicalType(Kind.DATE))))
    harness.source.write(tables=[to_plain(dated), to_plain(schema("public.b"))])
    result = cdc("check", "shop")
    (warning,) = cdc("check", "shop", "--json").body["unsupported_values"]
    assert "infinite times in until" in warning and "`on_unrepresentable: set_null`" in warning
    assert result.code == 0 and f"note: {warning}" in " ".join(result.out.split())


def test_check_reports_a_limit_of_concurrent_copies_of_the_source(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FileSource, "copies_at_once", lambda _: 1, raising=False)
    assert "2 tables, copied 1 at a time" in cdc("check", "shop").out


def test_check_warns_of_the_quotas_of_the_target(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def near(_: object, tables: int, runs_a_day: int) -> list[Problem]:
        return [Problem("TGT089", f"{tables} tables, {runs_a_day} times a day")]

    monkeypatch.setattr(FileTarget, "quota_warnings", near, raising=False)
    result = cdc("check", "shop")
    assert result.code == 0 and "warning: TGT089 2 tables, 0 times a day" in result.out


@pytest.mark.parametrize(("policy", "warned"), [("stop", False), ("ask", True), ("apply", True)])
def test_check_warns_if_renames_are_followed_and_the_login_cannot_see_them(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch, policy: str, warned: bool
) -> None:
    hidden = Problem("SRC139", "renamed tables are not found", do="GRANT PROCESS ON *.* TO cdc;")
    monkeypatch.setattr(FileSource, "present_names", lambda self, tables: {}, raising=False)
    monkeypatch.setattr(FileSource, "renames_hidden", lambda self: hidden, raising=False)
    path = harness.folder / "dags/replicators/shop.yaml"
    path.write_text(f"{path.read_text()}schema_changes: {{rename: {policy}}}\n")
    result = cdc("check", "shop")
    assert result.code == 0 and ("warning: SRC139" in result.out) is warned


def test_check_shows_all_problems(cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    harness.source.write(up=False)
    (harness.folder / "staging").write_text("a file where the folder should be")
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark"}')
    result = cdc("check", "shop", "--json")
    assert result.code == 78
    assert sorted(problem["code"] for problem in result.body["problems"]) == ["CON003", "SRC001", "STG010"]


def test_a_missing_connection_does_not_hide_problems_of_the_worker(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = harness.folder / "dags/replicators/shop.yaml"
    path.write_text(path.read_text() + "notify:\n  - {on: [blocked], via: no.such.Notifier, arguments: {text: late}}\n")
    monkeypatch.delenv("AIRFLOW_CONN_SHOP_DB")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark"}')
    result = cdc("check", "shop", "--json")
    assert result.code == 78
    assert [problem["code"] for problem in result.body["problems"]] == ["CON001", "CON003", "NTF001"]


def test_check_reports_each_problem_once(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(self: object, tables: object = ()) -> list[Problem]:
        raise SourceUnavailable.of("SRC001", "the source does not answer", found=f"attempt {uuid4()}")

    monkeypatch.setattr("tests.provider.run_harness.FileSource.tables", down)
    monkeypatch.setattr("tests.provider.run_harness.FileSource.check", down)
    result = cdc("check", "shop", "--json")
    assert [problem["code"] for problem in result.body["problems"]] == ["SRC001"]


def test_check_warns_of_unverified_tls_and_is_ready(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "warning" not in cdc("check", "shop").out, (
        "checked first: a runtime protocol caches a class that has the attribute"
    )
    warning = not_verified("shop_db", "tls_verify: false", "leave it out")
    monkeypatch.setattr(FileSource, "tls_warnings", lambda self: [warning], raising=False)
    result = cdc("check", "shop")
    assert result.code == 0
    assert "warning: CON041 TLS is not verified" in result.out and "shop_db" in result.out
    body = cdc("check", "shop", "--json").body
    assert (body["ready"], [one["code"] for one in body["warnings"]]) == (True, ["CON041"])
    monkeypatch.setattr(
        check, "state_tls_warnings", lambda: [not_verified("cdc_state", "tls_verify: false", "leave it out")]
    )
    assert "extra of connection cdc_state" in cdc("check", "shop").out


def test_check_shows_what_users_of_a_source_must_know(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FileSource, "warnings", lambda self: [never_run("shop")], raising=False)
    result = cdc("check", "shop", "--json")
    assert result.code == 0 and [one["code"] for one in result.body["warnings"]] == ["SRC120"]


def test_check_refuses_folders_that_executors_elsewhere_cannot_reach(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "spark://cluster", "port": 7077}')
    result = cdc("check", "shop", "--json")
    found = [(problem["code"], problem["where"].split()[0]) for problem in result.body["problems"]]
    assert found == [("ENV005", "staging.location"), ("ENV005", "target.location")]
