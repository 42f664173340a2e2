"""Texts and options of users in the YAML of a draft, as the loader reads them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.loader.draft import scalar
from airflow_cdc_provider.loader.options import parse_value
from airflow_cdc_provider.loader.report import Report
from airflow_cdc_provider.loader.yaml_tree import Broken, Mapping, Scalar, Sequence, read_tree
from tests.hostile_texts import TEXTS

AMBIGUOUS = ("2024-99-99", "0000-00-00", "2024-01-01", "010", "+10:00", "12:30", "1e3", "0o10", "1_000", "0x1f", ".5")


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])) | st.sampled_from([*TEXTS, *AMBIGUOUS]))
def test_a_text_in_a_draft_is_read_by_the_loader_as_it_is(text: str) -> None:
    """PyYAML reads some texts as dates, numbers of base 60 or 8, or not at all."""
    tree = read_tree(f"k: {scalar(text)}".encode(), Report("draft"))
    assert isinstance(tree, Mapping)
    ((_, value),) = tree.entries
    if isinstance(value, Broken):  # a text that may be a secret
        return
    assert isinstance(value, Scalar) and (value.kind, value.text) == ("str", text)


@pytest.mark.parametrize("text", [*AMBIGUOUS, "5", "true", "off", "null", "[a, 010, 2024-01-01]", "{a: 1e3}", "'x: y'"])
def test_a_value_of_an_option_is_that_of_a_file(text: str) -> None:
    def read(value: str) -> Any:
        tree = read_tree(f"k: {value}".encode(), Report("draft"))
        assert isinstance(tree, Mapping)
        return shape(tree.entries[0][1])

    assert read(scalar(parse_value(text))) == read(text)


def shape(node: Any) -> Any:
    """Kinds and texts, without locations."""
    match node:
        case Sequence():
            return [shape(item) for item in node.items]
        case Mapping():
            return [(key.text, shape(value)) for key, value in node.entries]
        case _:
            return node.kind, node.text


@pytest.mark.parametrize("text", ["[a", "{", "a: b: c", "&x y", "!!int 5"])
def test_a_value_that_is_no_yaml_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not YAML"):
        parse_value(text)
