"""The texts that are stored of a replicator, after it was renamed."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.table.questions import Answer, Question
from airflow_cdc_provider.core.table.renamed_texts import with_new_name
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import State, TableState


@pytest.mark.parametrize(
    ("text", "renamed"),
    [
        ("airflow cdc resume shop --table a", "airflow cdc resume mall --table a"),
        ("airflow cdc quarantine list shop; then airflow cdc resync shop", None),
        ("airflow cdc state rebuild shop", "airflow cdc state rebuild mall"),
        ("airflow cdc resume shop_eu --table shop", "airflow cdc resume shop_eu --table shop"),
        ("shop: column shop was renamed", "shop: column shop was renamed"),
        ("airflow cdc check", "airflow cdc check"),
    ],
)
def test_command_lines_of_a_text_name_the_renamed_replicator(text: str, renamed: str | None) -> None:
    expected = renamed or "airflow cdc quarantine list mall; then airflow cdc resync mall"
    state = State(TableState.BLOCKED, "2026-01-01", "a reason", text)
    assert with_new_name(state, "shop", "mall").remedy == expected


def test_every_text_of_a_row_is_renamed_and_the_rest_stays() -> None:
    question = Question("q", "public.a", 3, ("or airflow cdc resync shop",), (Answer.APPLY,))
    row = TableRow("shop", "shop", TableState.BLOCKED, error="TGT1 | do: airflow cdc resync shop", question=question)
    after = with_new_name(row, "shop", "mall")
    assert after.error == "TGT1 | do: airflow cdc resync mall"
    assert after.question is not None and after.question.changes == ("or airflow cdc resync mall",)
    assert (after.table, after.target, after.state) == ("shop", "shop", TableState.BLOCKED)
    assert with_new_name(after, "mall", "shop") == row
