"""Many replicators in one folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_cdc_provider.loader import find_clashes, load_file, load_folder

TEMPLATE = """\
name: {name}
source: {{type: postgres, connection: db, publication: p}}
target: {{type: delta, location: {location}}}
tables: [{tables}]
staging: {{location: /staging}}
"""


def write(folder: Path, file: str, name: str, location: str = "", tables: str = "{source: public.a}") -> None:
    text = TEMPLATE.format(name=name, location=location or f"/lake/{name}", tables=tables)
    (folder / file).write_text(text)


def test_a_broken_file_costs_only_itself(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "a")
    write(tmp_path, "b.yml", "b")
    (tmp_path / "c.yaml").write_text("name: [")
    (tmp_path / "notes.txt").write_text("no replicator")
    folder = load_folder(tmp_path)
    assert list(folder.loaded) == ["a", "b"]
    assert [(p.code, p.where.split(":")[0]) for p in folder.problems] == [("DEF002", str(tmp_path / "c.yaml"))]


def test_of_two_files_with_one_name_neither_is_loaded_and_both_are_named(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "a", "/lake/one")
    write(tmp_path, "b.yaml", "a", "/lake/two")
    write(tmp_path, "c.yaml", "c")
    folder = load_folder(tmp_path)
    assert list(folder.loaded) == ["c"]
    assert [(p.code, p.where, p.found) for p in folder.problems] == [
        ("DEF014", f"{tmp_path}/a.yaml:1 name", f"also in {tmp_path}/b.yaml:1"),
        ("DEF014", f"{tmp_path}/b.yaml:1 name", f"also in {tmp_path}/a.yaml:1"),
    ]


CLASHES = [
    ("{source: public.a}", "{source: public.a}"),
    ("{source: public.a}", "{source: PUBLIC.b, target: A}"),
    ("{source: public.a}", "{source: public.A}"),
    ("{source: 'public.*'}", "{source: public.a}"),
    ("{source: public.a}", "{source: '*.a'}"),
    ("{source: 'public.*'}", "{source: 'public.*'}"),
]


@pytest.mark.parametrize(("one", "other"), CLASHES)
def test_two_replicators_that_write_one_table_are_both_left_out(tmp_path: Path, one: str, other: str) -> None:
    write(tmp_path, "a.yaml", "a", "/lake", one)
    write(tmp_path, "b.yaml", "b", "/lake/", other)
    folder = load_folder(tmp_path)
    assert folder.loaded == {}
    assert [p.code for p in folder.problems] == ["DEF015", "DEF015"]
    assert str(tmp_path / "b.yaml") in folder.problems[0].found


def test_two_replicators_may_share_a_place_with_different_tables_and_a_table_name_in_different_places(
    tmp_path: Path,
) -> None:
    write(tmp_path, "a.yaml", "a", "/lake", "{source: public.a}")
    write(tmp_path, "b.yaml", "b", "/lake", "{source: public.b}")
    write(tmp_path, "c.yaml", "c", "/lake2", "{source: public.a}")
    folder = load_folder(tmp_path)
    assert (list(folder.loaded), folder.problems) == (["a", "b", "c"], ())


def test_one_catalog_has_room_for_a_name_once_wherever_the_folders_are(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "a", "/lake/a, catalog: main.shop")
    write(tmp_path, "b.yaml", "b", "/lake/b, catalog: Main.Shop")
    write(tmp_path, "c.yaml", "c", "/lake/c, catalog: main.other")
    folder = load_folder(tmp_path)
    assert list(folder.loaded) == ["c"]
    assert folder.problems[0].found == f"a in catalog main.shop, also in {tmp_path}/b.yaml"


def test_a_file_is_held_against_its_neighbours_and_against_the_others_that_are_asked_about(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    write(here, "a.yaml", "a", "/lake/one")
    write(here, "b.yaml", "b", "/lake/one")
    write(here, "c.yaml", "c", "/lake/two")
    write(there, "d.yaml", "d", "/lake/two")
    (here / "e.yaml").write_text("name: [")
    assert {file: [p.code for p in found] for file, found in find_clashes([load_file(here / "a.yaml")]).items()} == {
        str(here / "a.yaml"): ["DEF015"]
    }
    assert find_clashes([load_file(here / "c.yaml")]) == {}
    both = find_clashes([load_file(here / "c.yaml"), load_file(there / "d.yaml")])
    assert set(both) == {str(here / "c.yaml"), str(there / "d.yaml")}


def test_two_replicators_may_share_a_schema_but_no_table_of_it(tmp_path: Path) -> None:
    database = "{type: mysql, connection: warehouse, schema: shop}"
    for name, table in (("a", "public.a"), ("b", "public.b"), ("c", "public.a")):
        text = TEMPLATE.format(name=name, location="", tables=f"{{source: {table}}}")
        (tmp_path / f"{name}.yaml").write_text(text.replace("{type: delta, location: }", database))
    folder = load_folder(tmp_path)
    assert list(folder.loaded) == ["b"]
    assert [(p.code, "in schema shop" in p.found) for p in folder.problems] == [("DEF015", True)] * 2
