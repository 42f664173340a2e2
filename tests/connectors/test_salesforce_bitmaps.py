"""Bitmaps of change events: the bitmaps of recorded events, and invalid ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.sources.salesforce.bitmaps import FieldBitmap, parse_bitmap
from airflow_cdc_provider.connectors.sources.salesforce.errors import DecodeError

VECTORS = {
    "merged update": (["0x400800"], FieldBitmap((11, 22))),
    "part of an address": (["0x400000", "4-0x01"], FieldBitmap((22,), {4: (0,)})),
    "enriched update": (["0x400080"], FieldBitmap((7, 22))),
    "filtered update": (["0x400004"], FieldBitmap((2, 22))),
    "text diff": (["0x410000"], FieldBitmap((16, 22))),
    "lead conversion": (["0x08F81000"], FieldBitmap((12, 19, 20, 21, 22, 23, 27))),
    "street of a shipping address": (["0x800000", "6-0x01"], FieldBitmap((23,), {6: (0,)})),
    "two years later, three fields": (["0x800002"], FieldBitmap((1, 23))),
    "one transaction in two events": (["0x0400000000000000"], FieldBitmap((58,))),
}


@pytest.mark.parametrize(("elements", "meant"), VECTORS.values(), ids=VECTORS)
def test_the_bitmaps_of_recorded_events_name_the_fields_that_changed(elements: list[str], meant: FieldBitmap) -> None:
    assert parse_bitmap(elements) == meant


def test_case_02_changed_fields_without_a_top_level_bitmap_are_read_by_their_form() -> None:
    assert parse_bitmap(["6-0x0180"]) == FieldBitmap((), {6: (7, 8)})


def test_a_bitmap_longer_than_64_bits_keeps_all_bits() -> None:
    assert parse_bitmap(["0x100000000000800000"]) == FieldBitmap((23, 68))


@given(st.sets(st.integers(0, 300)), st.integers(0, 5))
def test_every_set_of_fields_is_read_back_with_any_leading_zeros(fields: set[int], zeros: int) -> None:
    bits = sum(1 << number for number in fields)
    assert parse_bitmap([f"0x{'0' * zeros}{bits:X}"]).fields == tuple(sorted(fields))


def test_no_element_means_no_field() -> None:
    assert not parse_bitmap([])
    assert not parse_bitmap(["0x"])
    assert not parse_bitmap(["0x00", "3-0x0"])


@pytest.mark.parametrize("element", ["", "Name", "400800", "-0x1", "0x1G", "4-", "4-6-0x1", "0x1\n", "²-0x1"])
def test_invalid_bitmaps_are_refused(element: str) -> None:
    with pytest.raises(DecodeError):
        parse_bitmap([element])


def test_two_elements_for_one_field_are_refused() -> None:
    with pytest.raises(DecodeError):
        parse_bitmap(["0x1", "0x2"])
