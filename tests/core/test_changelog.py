from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_cdc_provider.core.errors import StagingInvalid
from airflow_cdc_provider.core.log import change_log
from airflow_cdc_provider.core.log.change_log import DataFile, Hole, Manifest, TableSlice, seal, unseal
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from tests.hostile_texts import TEXTS

MANIFEST = Manifest(
    log_id="l1",
    window=12,
    epoch=1,
    lo={"slot": "0/1"},
    hi={"slot": "0/2"},
    previous_sha256="p",
    attempt="a1",
    sealed_at="2026-01-01T00:00:00Z",
    tables={
        "public.ä": TableSlice("d", ("s1",), (DataFile("f", 3, 10, "x"), DataFile("g", 4, 10, "y")), {"insert": 7})
    },
    holes=(Hole("gap", "public.ä", "f1", ("1", "2")),),
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=25)
@given(st.dictionaries(st.text(max_size=8).filter(lambda key: key != "format"), json_values, max_size=4))
def test_a_sealed_body_is_read_as_it_was_written(body: dict[str, object]) -> None:
    assert unseal(seal(body), "here") == body


@given(st.data())
def test_one_changed_byte_is_always_detected(data: st.DataObject) -> None:
    content = bytearray(MANIFEST.encode())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(StagingInvalid, match="STG002"):
        Manifest.decode(bytes(content), "here")


@given(st.integers(0, 400))
def test_a_truncated_file_is_always_detected(length: int) -> None:
    content = MANIFEST.encode()
    with pytest.raises(StagingInvalid, match=r"STG002.*where: windows/12/MANIFEST"):
        Manifest.decode(content[: min(length, len(content) - 1)], "windows/12/MANIFEST")


def test_another_format_is_refused_although_its_checksum_is_right() -> None:
    text = json.dumps({"format": 2})
    content = f"{text}\nsha256 {hashlib.sha256(text.encode()).hexdigest()}\n".encode()
    with pytest.raises(StagingInvalid, match="another format"):
        unseal(content, "here")


def test_a_manifest_is_read_as_it_was_written() -> None:
    assert Manifest.decode(MANIFEST.encode(), "here") == MANIFEST
    assert MANIFEST.tables["public.ä"].rows == 7


def test_equal_manifests_have_equal_bytes() -> None:
    assert MANIFEST.encode() == Manifest.decode(MANIFEST.encode(), "here").encode()


@given(st.integers(0, 10**10 - 1), st.integers(0, 10**10 - 1))
def test_window_folders_sort_by_their_numbers(one: int, other: int) -> None:
    assert (change_log.window_folder(one) < change_log.window_folder(other)) == (one < other)


@given(st.text(min_size=1))
def test_a_table_name_of_any_characters_is_one_folder_name_and_is_read_back(table: str) -> None:
    folder = change_log.table_folder(table)
    assert "/" not in folder and folder.isascii() and len(folder) <= change_log.LONGEST_FOLDER
    assert change_log.table_of_folder(folder) in (table, None)


def test_tables_have_different_folders_that_no_store_hides() -> None:
    tables = [*TEXTS, *(f"public.{text}" for text in TEXTS), *(f"{'名' * 64}.{'前' * 63}{n}" for n in range(3))]
    folders = [change_log.table_folder(table) for table in tables]
    assert len(set(folders)) == len(tables)
    assert [folder for folder in folders if folder.startswith(".") or len(folder) > 200] == []
    read_back = [change_log.table_of_folder(folder) for folder in folders]
    assert [table for table in read_back if table is not None] == [table for table in tables if "名" * 64 not in table]


def test_a_log_finds_the_tables_of_its_control_records(tmp_path: Path) -> None:
    log = ChangeLog(LocalStore(str(tmp_path)))
    tables = ["public.orders", "..", ".hidden", "名" * 64 + "." + "前" * 64]
    for table in tables:
        state = State(TableState.REPLICATING, "2026-01-01T00:00:00Z")
        assert log.write_control(ControlRecord("shop", table, "log", "me", "a", 1, 1, "", state))
    assert sorted(log.tables()) == sorted(tables)


@pytest.mark.parametrize("table", ["../../etc", "a/b", "a b", "%2e", "..", "."])
def test_no_table_name_leads_out_of_its_folder(table: str) -> None:
    for path in (change_log.control_path(table, 1, 2), change_log.batch_folder(table, "a")):
        assert path.count("/") == 2 and not {".", ".."} & set(path.split("/"))


def test_a_run_id_is_one_folder_name() -> None:
    folder = change_log.run_folder(change_log.runs_folder("abc"), "manual__2026-01-01T00:00:00+00:00/../x")
    assert folder.split("/")[:2] == ["steps", "owner=abc"] and len(folder.split("/")) == 3
    assert change_log.run_folder("steps", "owner=abc") != change_log.runs_folder("abc"), "no run id is a folder of runs"


def test_a_position_is_equal_whatever_the_order_of_its_channels() -> None:
    assert change_log.position_text({"b": "2", "a": "1"}) == "a 1, b 2"
