"""The settings that carry the token of a merge, and how its commit is found afterwards. A dict stands in for
Spark's."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.fencing import has_commit
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.writers.delta import APP_ID, METADATA, VERSION, _token

RECORD = ControlRecord(
    "r", "public.t", "log", "owner", "a", 2, 5, "f", State(TableState.REPLICATING, "2026-01-01"), nonce="n"
)


class Settings(dict[str, str]):
    set = dict.__setitem__
    unset = dict.__delitem__


@pytest.mark.parametrize("dies", [False, True])
def test_the_token_is_in_the_settings_during_the_merge_only(dies: bool) -> None:
    session = SimpleNamespace(conf=Settings(other="stays"))
    try:
        with _token(session, "cdc/r/public.t", RECORD):  # type: ignore[arg-type]
            assert session.conf[APP_ID] == "cdc/r/public.t" and session.conf[VERSION] == str(RECORD.token)
            assert RECORD.nonce in session.conf[METADATA]
            if dies:
                raise OSError
    except OSError:
        assert dies
    assert session.conf == {"other": "stays"}


def test_a_commit_is_identified_by_token_attempt_and_nonce() -> None:
    assert has_commit(TargetState(True, RECORD), RECORD)
    for other in (replace(RECORD, nonce="x"), replace(RECORD, attempt="b"), replace(RECORD, window=6)):
        assert not has_commit(TargetState(True, other), RECORD)
    assert not has_commit(TargetState(True), RECORD)
