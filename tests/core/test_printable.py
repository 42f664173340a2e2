"""Texts of others in terminals, logs and messages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.decisions.alert_texts import placeholders
from airflow_cdc_provider.core.decisions.alerts import Alert
from airflow_cdc_provider.core.errors import Blocked, Problem
from airflow_cdc_provider.core.markdown import code
from airflow_cdc_provider.core.printable import printable, printable_lines
from airflow_cdc_provider.core.spec.notifications import NotifyOn

TEXTS = st.text(st.characters(exclude_categories=()), max_size=20)
"""Also control characters, marks of direction and lone surrogates."""
HOSTILE = "a\x1b[2J\r\n\u202eb\u2028c\x9b31m\ud800"


@given(TEXTS)
def test_a_text_of_others_is_one_line_without_control_characters(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable() and (shown == text or not text.isprintable())
    shown.encode()


@given(TEXTS)
def test_the_lines_and_tabs_of_a_longer_text_stay(text: str) -> None:
    shown = printable_lines(text)
    assert (shown.count("\n"), shown.count("\t")) == (text.count("\n"), text.count("\t"))
    assert shown.replace("\n", "").replace("\t", "").isprintable()


def test_escapes_show_what_a_text_contains() -> None:
    assert printable(HOSTILE) == r"a\x1b[2J\r\n\u202eb\u2028c\x9b31m\ud800"
    assert printable("ä€😀 |`") == "ä€😀 |`"


def test_problems_notices_and_markdown_show_names_of_others() -> None:
    problem = Problem("SRC010", f"{HOSTILE} is denied", HOSTILE, HOSTILE, do=HOSTILE)
    assert str(problem).isprintable() and all(detail.isprintable() for detail in problem.details)
    assert str(Blocked(problem, problem)).count("\n") == 1
    assert code(HOSTILE).isprintable()
    alert = Alert(HOSTILE, "1", NotifyOn.BLOCKED, "2026-01-01T00:00:00Z", HOSTILE, HOSTILE)
    values = placeholders("shop", [alert], "https://airflow/page")
    assert all(value.isprintable() for name, value in values.items() if name != "text")
    assert values["text"].count("\n") == 3
