"""Files and folders of replicators."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from airflow_cdc_provider.core.errors import DefinitionInvalid, Problem
from airflow_cdc_provider.core.spec.definition import Definition, TableRule, Target
from airflow_cdc_provider.core.spec.selection import is_pattern, matches
from airflow_cdc_provider.loader.builder import Builder, Unusable
from airflow_cdc_provider.loader.checks import check
from airflow_cdc_provider.loader.report import Report
from airflow_cdc_provider.loader.types import location_keys, table_naming
from airflow_cdc_provider.loader.yaml_tree import MAX_BYTES, read_tree


@dataclass(frozen=True)
class Loaded:
    """A definition, where it was read, and what is odd but allowed in it. ``line`` is where its name stands."""

    definition: Definition
    file: str
    line: int
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class ReplicatorFolder:
    """``loaded`` by name; ``problems`` of the files that are left out."""

    loaded: dict[str, Loaded]
    problems: tuple[Problem, ...] = ()


def load_text(data: bytes, file: str) -> Loaded:
    """The definition in ``data``; ``file`` is its name in messages. Raises DefinitionInvalid with every problem."""
    report = Report(file)
    tree = read_tree(data, report)
    if tree is None:
        raise DefinitionInvalid(*report.problems)
    builder = Builder(report)
    try:
        definition: Definition | None = builder.build(Definition, tree)
    except Unusable:
        definition = None
    check(builder)
    if report.problems or definition is None:
        raise DefinitionInvalid(*report.problems)
    return Loaded(definition, file, builder.locations["name",].line, report.warnings)


def load_file(path: str | Path) -> Loaded:
    """The definition in a file. Raises DefinitionInvalid with every problem, also where it cannot be read."""
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise DefinitionInvalid(
            Problem("DEF009", "the file cannot be read", str(path), error.strerror or type(error).__name__)
        ) from error
    return load_text(data, str(path))


def load_folder(folder: str | Path) -> ReplicatorFolder:
    """Every ``*.yaml`` and ``*.yml`` of a folder. Replicators that share a name or a target table are left out."""
    loaded: list[Loaded] = []
    problems: list[Problem] = []
    for path in _files(Path(folder)):
        try:
            loaded.append(load_file(path))
        except DefinitionInvalid as invalid:
            problems += invalid.problems
    shared = _clashes(loaded)
    problems += [problem for found in shared.values() for problem in found]
    return ReplicatorFolder(
        {entry.definition.name: entry for entry in loaded if entry.file not in shared}, tuple(problems)
    )


def find_clashes(loaded: Iterable[Loaded]) -> dict[str, list[Problem]]:
    """By file: a name or a target table that it shares with another of these files, or with any other of its folder.
    Neighbours that cannot be read are passed over; whoever validates them is told why."""
    known = {Path(entry.file).resolve(): entry for entry in loaded}
    given = {entry.file for entry in known.values()}
    neighbours = {path.resolve() for folder in {path.parent for path in known} for path in _files(folder)}
    for path in sorted(neighbours - known.keys()):
        with contextlib.suppress(DefinitionInvalid):
            known[path] = load_file(path)
    return {file: problems for file, problems in _clashes(list(known.values())).items() if file in given}


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml"))


def _clashes(loaded: list[Loaded]) -> dict[str, list[Problem]]:
    found: defaultdict[str, list[Problem]] = defaultdict(list)
    for file, problem in (*_same_name(loaded), *_same_target(loaded)):
        found[file].append(problem)
    return dict(found)


def _same_name(loaded: list[Loaded]) -> Iterable[tuple[str, Problem]]:
    by_name: defaultdict[str, list[Loaded]] = defaultdict(list)
    for entry in loaded:
        by_name[entry.definition.name].append(entry)
    for name, entries in by_name.items():
        for entry in entries:
            others = [f"{other.file}:{other.line}" for other in entries if other is not entry]
            if others:
                yield (
                    entry.file,
                    Problem(
                        "DEF014",
                        f"replicator {name} is defined more than once; none of them is loaded",
                        f"{entry.file}:{entry.line} name",
                        found="also in " + ", ".join(others),
                        do="give each replicator a name of its own",
                    ),
                )


def _same_target(loaded: list[Loaded]) -> Iterable[tuple[str, Problem]]:
    for one, other in combinations(loaded, 2):
        if _share_a_place(one.definition.target, other.definition.target):
            shared = _shared_table(one.definition, other.definition)
            if shared and one.definition.name != other.definition.name:
                yield _clash(one, other, shared)
                yield _clash(other, one, shared)


def _share_a_place(one: Target, other: Target) -> bool:
    """The same folder, catalog or schema: a name in it can stand for one table only."""
    return one.type == other.type and bool(_shared_places(one, other))


def _shared_places(one: Target, other: Target) -> list[str]:
    """The keys by which two targets of one type say the same place."""
    places = location_keys(one.type)
    if places.within and _said(one, places.within) != _said(other, places.within):
        return []
    shared = [key for key in places.any_of if _said(one, key) and _said(one, key) == _said(other, key)]
    return [key for key in (places.within, *shared) if key and _said(one, key)] if shared else []


def _said(target: Target, key: str) -> str:
    """What a target says its place is, as far as spelling makes no difference."""
    said = str(getattr(target, key, "") or target.options.get(key, ""))
    return said.lower() if key == "catalog" else said.rstrip("/")


def _clash(entry: Loaded, other: Loaded, table: str) -> tuple[str, Problem]:
    mine, theirs = entry.definition.target, other.definition.target
    key = _shared_places(mine, theirs)[0]
    said = getattr(mine, key, "") or mine.options.get(key)
    place = said if key == "location" else f"{key} {said}"
    return (
        entry.file,
        Problem(
            "DEF015",
            f"{entry.definition.name} and {other.definition.name} would write the same target table",
            f"{entry.file}:{entry.line} name",
            found=f"{table} in {place}, also in {other.file}",
            allowed="one writer per table",
            do="give one of them another location or another target name",
        ),
    )


def _shared_table(one: Definition, other: Definition) -> str:
    """A target table that both would write, as far as names tell without asking the sources; empty where none."""
    name_of = table_naming(one.target.type)
    for mine in one.tables:
        for theirs in other.tables:
            if _overlap(mine, theirs) or _overlap(theirs, mine):
                return mine.source if mine.source == theirs.source else f"{mine.source} and {theirs.source}"
            if not is_pattern(mine.source) and not is_pattern(theirs.source):
                names = [(rule.target or name_of(rule.source)).lower() for rule in (mine, theirs)]
                if names[0] == names[1]:
                    return names[0]
    return ""


def _overlap(pattern: TableRule, rule: TableRule) -> bool:
    """Whether a pattern of one replicator takes in a table, or the pattern, of the other."""
    return is_pattern(pattern.source) and not rule.target and matches(pattern.source, rule.source)
