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


def test_other_files_load_beside_a_broken_one(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "a")
    write(tmp_path, "b.yml", "b")
    (tmp_path / "c.yaml").write_text("name: [")
    (tmp_path / "notes.txt").write_text("no replicator")
    folder = load_folder(tmp_path)
    assert list(folder.loaded) == ["a", "b"]
    assert [(p.code, p.where.split(":")[0]) for p in folder.problems] == [("DEF002", str(tmp_path / "c.yaml"))]


def test_two_files_with_one_name_are_not_loaded_and_both_are_named(tmp_path: Path) -> None:
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
def test_two_replicators_that_write_one_table_are_not_loaded(tmp_path: Path, one: str, other: str) -> None:
    write(tmp_path, "a.yaml", "a", "/lake", one)
    write(tmp_path, "b.yaml", "b", "/lake/", other)
    folder = load_folder(tmp_path)
    assert folder.loaded == {}
    assert [p.code for p in folder.problems] == ["DEF015", "DEF015"]
    assert str(tmp_path / "b.yaml") in folder.problems[0].found


def test_two_replicators_may_write_different_tables_to_one_location_and_equal_names_to_different_locations(
    tmp_path: Path,
) -> None:
    write(tmp_path, "a.yaml", "a", "/lake", "{source: public.a}")
    write(tmp_path, "b.yaml", "b", "/lake", "{source: public.b}")
    write(tmp_path, "c.yaml", "c", "/lake2", "{source: public.a}")
    folder = load_folder(tmp_path)
    assert (list(folder.loaded), folder.problems) == (["a", "b", "c"], ())


def test_a_table_name_is_unique_in_a_catalog_also_in_different_folders(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "a", "/lake/a, catalog: main.shop")
    write(tmp_path, "b.yaml", "b", "/lake/b, catalog: Main.Shop")
    write(tmp_path, "c.yaml", "c", "/lake/c, catalog: main.other")
    folder = load_folder(tmp_path)
    assert list(folder.loaded) == ["c"]
    assert folder.problems[0].found == f"a in catalog main.shop, also in {tmp_path}/b.yaml"


def test_a_file_is_compared_with_the_files_of_its_folder_and_with_the_other_given_files(tmp_path: Path) -> None:
    folder_a, folder_b = tmp_path / "a", tmp_path / "b"
    folder_a.mkdir()
    folder_b.mkdir()
    write(folder_a, "a.yaml", "a", "/lake/one")
    write(folder_a, "b.yaml", "b", "/lake/one")
    write(folder_a, "c.yaml", "c", "/lake/two")
    write(folder_b, "d.yaml", "d", "/lake/two")
    (folder_a / "e.yaml").write_text("name: [")
    assert {
        file: [p.code for p in found] for file, found in find_clashes([load_file(folder_a / "a.yaml")]).items()
    } == {str(folder_a / "a.yaml"): ["DEF015"]}
    assert find_clashes([load_file(folder_a / "c.yaml")]) == {}
    both = find_clashes([load_file(folder_a / "c.yaml"), load_file(folder_b / "d.yaml")])
    assert set(both) == {str(folder_a / "c.yaml"), str(folder_b / "d.yaml")}


def test_two_replicators_may_write_different_tables_to_one_schema(tmp_path: Path) -> None:
    database = "{type: mysql, connection: warehouse, schema: shop}"
    for name, table in (("a", "public.a"), ("b", "public.b"), ("c", "public.a")):
        text = TEMPLATE.format(name=name, location="", tables=f"{{source: {table}}}")
        (tmp_path / f"{name}.yaml").write_text(text.replace("{type: delta, location: }", database))
    folder = load_folder(tmp_path)
    assert list(folder.loaded) == ["b"]
    assert [(p.code, "in schema shop" in p.found) for p in folder.problems] == [("DEF015", True)] * 2
