"""Text diffs: applied to the right text they give the new one, applied to any other text nothing."""

from __future__ import annotations

import difflib
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.sources.salesforce.diffs import apply_diff

OLD = "first line\r\nsecond line\r\nthird line"
NEW = "first line\r\n2nd line\r\nthird line\r\nfourth line"


def diff(old: str, new: str, newline: str = "\n") -> str:
    """As Salesforce writes it: the hash of the new text, then hunks without context."""
    lines = list(difflib.unified_diff(old.split(newline), new.split(newline), n=0, lineterm=""))[2:]
    return "\n".join(["--- ", f"+++ {hashlib.sha256(new.encode()).hexdigest()}", *lines])


def test_a_diff_gives_the_new_text() -> None:
    assert apply_diff(OLD, diff(OLD, NEW, "\r\n")) == NEW


def test_case_19_a_diff_that_was_already_applied_changes_nothing() -> None:
    assert apply_diff(NEW, diff(OLD, NEW, "\r\n")) == NEW


@pytest.mark.parametrize("text", ["", "first line\r\nanother line\r\nthird line", OLD + "\r\nmore", "first line"])
def test_case_19_a_diff_on_a_newer_base_gives_nothing(text: str) -> None:
    assert apply_diff(text, diff(OLD, NEW, "\r\n")) is None


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_case_20_the_new_text_keeps_the_newlines_of_the_old(newline: str) -> None:
    old, new = OLD.replace("\r\n", newline), NEW.replace("\r\n", newline)
    assert apply_diff(old, diff(old, new, newline)) == new


def test_added_and_removed_lines_are_applied() -> None:
    assert apply_diff("a\nb\nc", diff("a\nb\nc", "0\na\nb\nc")) == "0\na\nb\nc"
    assert apply_diff("a\nb\nc", diff("a\nb\nc", "a\nc")) == "a\nc"


def test_a_line_may_contain_characters_that_others_treat_as_a_newline() -> None:
    old, new = "a\x0b\x85b\u2028c\nd", "a\x0b\x85b\u2028c\ne"
    assert apply_diff(old, diff(old, new)) == new


@pytest.mark.parametrize(
    "text", ["", "no diff", "--- \n+++ ", "--- \n+++ 00\n what", "--- \n+++ 00\n@@ -9,1 +9,1 @@\n-x"]
)
def test_an_invalid_diff_gives_nothing(text: str) -> None:
    assert apply_diff("a\nb", text) is None


LINES = st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=5), min_size=1, max_size=12)


@given(LINES, LINES)
def test_the_diff_of_any_two_texts_leads_from_one_to_the_other(old: list[str], new: list[str]) -> None:
    before, after = "\n".join(old), "\n".join(new)
    assert apply_diff(before, diff(before, after)) == after
