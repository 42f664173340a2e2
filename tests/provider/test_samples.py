"""The changes that wait for an answer, and values of some of them, as the change log has them."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_cdc_provider.control.samples import MAX_TEXT, Sample, sample_of
from airflow_cdc_provider.core.log.change_log import DataFile, Manifest, TableSlice
from airflow_cdc_provider.core.table.questions import Answer, Question
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Origin, TableSchema
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore

TEXT = LogicalType(Kind.TEXT)
SCHEMA = TableSchema(
    "public.a",
    (
        Column("id", LogicalType(Kind.INT32), nullable=False),
        Column("size_cm", TEXT, origin=Origin("size", TEXT)),
        Column("mail", TEXT),
    ),
    ("id",),
)
QUESTION = Question(
    "0123456789abcdef",
    "public.a",
    1,
    ("size changes",),
    (Answer.LEAVE,),
    columns=("size",),
    schema_id=SCHEMA.schema_id,
)


@pytest.fixture
def log(tmp_path: Path) -> ChangeLog:
    made = ChangeLog(LocalStore(str(tmp_path)))
    made.write_schema(SCHEMA)
    return made


def land(log: ChangeLog, window: int, *records: tuple[str, dict[str, Any] | None]) -> None:
    """``records``: operation and the image after it."""
    table = pa.table({"op": [op for op, _ in records], "after": [after and json.dumps(after) for _, after in records]})
    content = io.BytesIO()
    pq.write_table(table, content)
    path = f"windows/{window}/one/a.parquet"
    log.store.write(path, content.getvalue())
    file = DataFile(path, len(records), len(content.getvalue()), "0" * 64)
    previous = log.manifest_sha256(window - 1)
    slices = {"public.a": TableSlice("d", files=(file,)), "public.b": TableSlice("d")}
    log.seal(Manifest("log", window, 1, {}, {}, previous, "one", "2026-01-01T00:00:00Z", slices))


def sampled(log: ChangeLog, question: Question = QUESTION) -> Sample:
    return sample_of(SimpleNamespace(log=log), question)  # type: ignore[arg-type]


def test_values_are_those_of_the_changed_columns_by_their_names_in_the_copy(log: ChangeLog) -> None:
    land(log, 1, ("insert", {"id": 1, "size_cm": "before the change", "mail": "m"}))
    land(log, 2, ("insert", {"id": 2, "size_cm": "7.5", "mail": "secret@example.org"}), ("delete", None))
    land(log, 3, ("update", {"id": 2, "mail": "other@example.org"}), ("update", {"id": 2, "size_cm": None}))
    assert sampled(log) == Sample(4, ({"size_cm": '"7.5"'},))


def test_few_values_are_shown_and_long_ones_are_cut(log: ChangeLog) -> None:
    land(log, 1)
    land(log, 2, *(("insert", {"id": n, "size_cm": "x" * 1000}) for n in range(9)))
    found = sampled(log)
    assert found.records == 9 and len(found.values) == 3
    assert all(len(text) == MAX_TEXT + 1 for one in found.values for text in one.values())


def test_both_columns_of_a_possible_rename_are_shown(log: ChangeLog) -> None:
    land(log, 1)
    land(log, 2, ("insert", {"id": 2, "mail": "m", "size_cm": "7"}))
    question = replace(QUESTION, columns=(), renames=(("mail", "size_cm"),))
    assert sampled(log, question).values == ({"mail": '"m"', "size_cm": '"7"'},)


def test_a_question_that_is_not_about_columns_shows_only_how_many_changes_wait(log: ChangeLog) -> None:
    land(log, 1)
    land(log, 2, ("truncate", None), ("insert", {"id": 2, "mail": "m"}))
    assert sampled(log, replace(QUESTION, columns=(), schema_id="")) == Sample(2)
