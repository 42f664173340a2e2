"""For any content of a file the loader returns a definition or the locations of its problems."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from airflow_cdc_provider.core.errors import DefinitionInvalid
from airflow_cdc_provider.loader import load_text

SHOP = (Path(__file__).parents[2] / "dags" / "replicators" / "shop.yaml").read_text()
PIECES = [
    *"{}[]#%@?~|>=\n\t\x07\0\u2028\u0661", ": ", "- ", "  ", "'", '"', "&a ", "*a", "!x ", "!!int ", "<<", "---", "...",
    "null", "no", "0x1f", "1e9", "1_0", "9" * 5000, ".nan", "12:30:45", "2024-13-45",
    "name", "source", "options", "where", "password", "{{ x }}",
]  # fmt: skip
LOCATION = re.compile(r"shop\.yaml:[1-9][0-9]*:[1-9][0-9]*( [^ ].*)?")


@settings(max_examples=600, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(SHOP)), st.integers(0, 12), st.sampled_from(PIECES)), min_size=1, max_size=4)
)
@example([(SHOP.index("retries: 2") + 9, 1, "9" * 5000)])
@example([(SHOP.index("7d"), 2, "2024-13-45")])
@example([(SHOP.index("[order_id]"), 10, "*a : [x]")])
def test_a_corrupt_definition_is_read_or_refused_with_locations(edits: list[tuple[int, int, str]]) -> None:
    text = SHOP
    for at, cut, piece in edits:
        text = text[:at] + piece + text[at + cut :]
    try:
        load_text(text.encode(), "shop.yaml")
    except DefinitionInvalid as invalid:
        assert invalid.problems
        for problem in invalid.problems:
            assert problem.code.startswith("DEF")
            assert LOCATION.fullmatch(problem.where), problem
            assert len(str(problem)) < 1500


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_bytes_that_are_no_definition_are_refused(data: bytes) -> None:
    try:
        load_text(data, "shop.yaml")
    except DefinitionInvalid as invalid:
        assert all(LOCATION.fullmatch(problem.where) for problem in invalid.problems)
    else:
        raise AssertionError("no bytes of this size make a definition")
