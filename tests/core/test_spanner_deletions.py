"""A table of Spanner that deletes rows by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf.struct_pb2 import NullValue, Value

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.targets.spanner.catalog import find_tables
from airflow_cdc_provider.targets.spanner.control import ControlRow
from airflow_cdc_provider.targets.spanner.names import MARKER
from airflow_cdc_provider.targets.spanner.target import SpannerTarget

RECORD = ControlRecord("shop", "public.t", "log", "me", "one", 1, 0, "f0", State(TableState.REPLICATING, "now"))
OLDER = "TIMESTAMP_ADD(at, INTERVAL 30 DAY) < CURRENT_TIMESTAMP()"


def value(text: str) -> Value:
    return Value(string_value=text) if text else Value(null_value=NullValue.NULL_VALUE)


class Catalog:
    """A session whose catalog has the table, with this policy."""

    def __init__(self, policy: str) -> None:
        self.policy = policy

    def query(self, sql: str, **_: str) -> list[list[Value]]:
        assert "t.row_deletion_policy_expression" in sql
        return [[value("t"), value(f"{MARKER}copy"), value(self.policy)]]


@pytest.mark.parametrize("policy", ["", OLDER])
def test_a_table_that_deletes_rows_takes_no_changes(tmp_path: Path, policy: str) -> None:
    given = Target("spanner", connection="c", options={"instance": "i", "database": "d", "project": "p"})
    target = SpannerTarget(given, ConnectionInfo(), "shop", ChangeLog(LocalStore(str(tmp_path))))
    session: Any = Catalog(policy)
    state = target.as_state("public.t", ControlRow("copy", RECORD), find_tables(session, "t"))
    assert state.control == RECORD
    assert [state.unfit and state.unfit.problem.code] == ["TGT101" if policy else None]
    assert not state.unfit or OLDER in state.unfit.problem.found
