"""Mistakes in `columns` and in `target`, each with its code and location."""

from __future__ import annotations

import pytest

from tests.provider.shop_yaml import load, problems, rule


def keyed(text: str) -> str:
    """With a key for hashes."""
    return rule(text) + "hash_connection: hashes\n"


MISTAKES = [
    ("a cast to a decimal without digits", rule("columns: {cast: {at: decimal}}"), "DEF055", "7:26"),
    ("a hash without a key", rule("columns: {hash: [id]}"), "DEF065", "7:21"),
    ("a hash of an excluded column", keyed("columns: {exclude: [s], hash: [s]}"), "DEF021", "7:36"),
    ("a column that is hashed and masked", keyed("columns: {hash: [s], mask: {s: 2}}"), "DEF063", "7:36"),
    ("a mask of a negative length", rule("columns: {mask: {s: -1}}"), "DEF046", "7:25"),
    ("a truncation to nothing", rule("columns: {truncate: {s: 0}}"), "DEF046", "7:29"),
    ("a mask that is no number", rule("columns: {mask: {s: all}}"), "DEF046", "7:25"),
    ("a mask without a length", rule("columns: {mask: [s]}"), "DEF018", "7:21"),
    ("a new name with a reserved prefix", rule("columns: {rename: {s: _cdc_s}}"), "DEF013", "7:27"),
    ("an added column without content", rule("columns: {add: [{name: region}]}"), "DEF064", "7:21"),
    (
        "an added column with two contents",
        rule("columns: {add: [{name: a, value: 1, metadata: operation}]}"),
        "DEF064",
        "7:21",
    ),
    ("unknown metadata", rule("columns: {add: [{name: a, metadata: host}]}"), "DEF046", "7:41"),
    ("a plain column of a table that is not sensitive", rule("columns: {plain: [s]}"), "DEF066", "7:22"),
    ("an unknown placeholder", rule('target: "{tabel}"'), "DEF013", "7:13"),
    ("half a placeholder", rule('target: "a}"'), "DEF013", "7:13"),
]


@pytest.mark.parametrize(("yaml", "code", "location"), [case[1:] for case in MISTAKES], ids=[c[0] for c in MISTAKES])
def test_a_mistake_is_reported_once_with_its_code_and_location(yaml: str, code: str, location: str) -> None:
    found = problems(yaml)
    assert [(problem.code, problem.where.split(" ")[0]) for problem in found] == [(code, f"shop.yaml:{location}")]


def test_valid_settings_are_loaded() -> None:
    definition = load(
        keyed(
            "target: '{schema}_{table}'\nsensitive: true\n"
            "columns: {hash: [id], mask: {password: 4}, truncate: {s: 9}, cast: {n: 'decimal(12,2)', t: text},"
            " rename: {token: t2}, plain: [p], add: [{name: a, value: 1}, {name: b, metadata: operation}]}"
        )
    )
    (table,) = definition.tables
    assert (table.sensitive, table.target, definition.hash_connection) == (True, "{schema}_{table}", "hashes")
    assert table.columns.mask == {"password": 4} and table.columns.rename == {"token": "t2"}
    assert (set(table.columns.as_text), table.columns.converted) == ({"t"}, {"n": "decimal(12,2)"})
    assert [added.value for added in table.columns.add] == [1, None]
