"""A text means one table of a source, whatever characters its name has."""

from __future__ import annotations

import shlex
from itertools import product

import pytest

from airflow_cdc_provider.core.table.copies import copy_name, history_name, source_table
from airflow_cdc_provider.core.table.source_names import in_lower_case, in_shell, parts_of, schema_and_table, table_name

PARTS = ["a", "B", "", ".", '"', "a.b", "b.c", 'a"b', '"a"', '"a.b"', 'a".', '."', "t@lake", "t:history", "a@b.c", "*"]


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (("public", "orders"), "public.orders"),
        (("db", "dbo", "t"), "db.dbo.t"),
        (("Account",), "Account"),
        (("local/shop/orders",), "local/shop/orders"),
        (("público", 'say"hi"', "x y$"), 'público.say"hi".x y$'),
        (("a", "b.c"), 'a."b.c"'),
        (("a.b", "c"), '"a.b".c'),
        (("a", '"b'), 'a."""b"'),
    ],
)
def test_only_a_part_that_is_no_plain_part_is_quoted(parts: tuple[str, ...], text: str) -> None:
    assert table_name(*parts) == text
    assert parts_of(text) == parts


def test_no_two_names_have_one_text() -> None:
    names = [parts for length in (1, 2, 3) for parts in product(PARTS, repeat=length)]
    texts = {table_name(*parts): parts for parts in names}
    assert len(texts) == len(names)
    assert all(parts_of(text) == parts for text, parts in texts.items())


@pytest.mark.parametrize("parts", [("shop", "t@lake"), ("shop", "t:history"), ("t@lake",), ("shop", "t@lake:history")])
def test_no_name_of_a_table_is_that_of_a_copy_of_another(parts: tuple[str, ...]) -> None:
    table = table_name(*parts)
    assert source_table(table) == table
    assert source_table(history_name(copy_name(table, "lake"))) == table


@pytest.mark.parametrize("text", ['a."b', '"a"b.c', '"', 'a.""b', "", ".", 'a."b"c.d"'])
def test_a_text_that_no_name_has_still_has_parts(text: str) -> None:
    assert ".".join(parts_of(text)).replace('"', "") == text.replace('"', "")


def test_a_table_of_a_schema_has_two_parts() -> None:
    assert schema_and_table(["a.b", "a.b.c", "c", 'a."b.c"']) == [("a", "b"), ("a", "b.c")]


@pytest.mark.parametrize("parts", [("public", "orders"), ("a", "b.c"), ("a", "it's $HOME"), ("a", '"')])
def test_a_shell_passes_the_text_on(parts: tuple[str, ...]) -> None:
    name = history_name(table_name(*parts))
    assert shlex.split(f"airflow cdc resync shop --table {in_shell(name)}")[-1] == name
    assert in_shell("public.orders:history") == "public.orders:history"


def test_lower_case_does_not_change_the_parts() -> None:
    assert in_lower_case('Shop."B.C"') == 'shop."b.c"'
    assert in_lower_case(table_name("S", "T@LAKE")) == table_name("s", "t@lake")
