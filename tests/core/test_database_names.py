"""Names of what a copy in a database has beside its table."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.targets.database.names import key_index

IDENTITY = "0123456789abcdef" * 2


@pytest.mark.parametrize("table", ["t", "t" * 63, "ü" * 31, "表" * 21])
def test_the_name_of_a_key_is_not_cut_by_the_server(table: str) -> None:
    """PostgreSQL cuts names at 63 bytes, and two copies of a table would have one name for their keys."""
    name = key_index(table, IDENTITY)
    assert len(name.encode()) < 63 and name.startswith(table[:10]) and name.endswith("_01234567_key")
