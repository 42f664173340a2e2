"""Which engine does the work of a table, and how that is shown."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.spec.engines import (
    LOCAL_ROWS,
    LOCAL_UPLOAD_ROWS,
    EngineMode,
    EngineName,
    EngineUse,
    why_spark,
)


@pytest.mark.parametrize(
    ("mode", "rows", "reason"),
    [
        (EngineMode.AUTO, 0, ""),
        (EngineMode.AUTO, LOCAL_ROWS, ""),
        (EngineMode.AUTO, LOCAL_ROWS + 1, "more than 250,000"),
        (EngineMode.SPARK, 1, "`engine: spark`"),
    ],
)
def test_the_driver_does_small_work_unless_the_definition_says_spark(mode: EngineMode, rows: int, reason: str) -> None:
    assert why_spark(mode, rows) == reason


def test_rows_that_a_warehouse_loads_from_files_have_a_limit_of_their_own() -> None:
    assert why_spark(EngineMode.AUTO, LOCAL_UPLOAD_ROWS, LOCAL_UPLOAD_ROWS) == ""
    assert why_spark(EngineMode.AUTO, LOCAL_UPLOAD_ROWS + 1, LOCAL_UPLOAD_ROWS) == "more than 2,000,000"


def test_the_use_of_an_engine_is_one_line() -> None:
    assert str(EngineUse(EngineName.LOCAL, 1_204)) == "local: 1,204 rows"
    assert str(EngineUse(EngineName.SPARK, 7, "a repair")) == "spark: 7 rows, a repair"
