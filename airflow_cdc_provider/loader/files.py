"""Files and folders of replicators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from airflow_cdc_provider.core.definition import Definition, TableRule
from airflow_cdc_provider.core.errors import DefinitionInvalid, Problem
from airflow_cdc_provider.core.selection import is_pattern, matches
from airflow_cdc_provider.loader.checks import check
from airflow_cdc_provider.loader.kinds import table_naming
from airflow_cdc_provider.loader.nodes import MAX_BYTES, read_tree
from airflow_cdc_provider.loader.report import Report
from airflow_cdc_provider.loader.shape import Builder, Unusable


@dataclass(frozen=True)
class Loaded:
    """A definition, where it was read, and what is odd but allowed in it. ``line`` is where its name stands."""

    definition: Definition
    file: str
    line: int
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Folder:
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
    return Loaded(definition, file, builder.places["name",].line, report.warnings)


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


def load_folder(folder: str | Path) -> Folder:
    """Every ``*.yaml`` and ``*.yml`` of a folder. Replicators that share a name or a target table are left out."""
    loaded: list[Loaded] = []
    problems: list[Problem] = []
    for path in sorted(p for p in Path(folder).iterdir() if p.suffix in (".yaml", ".yml")):
        try:
            loaded.append(load_file(path))
        except DefinitionInvalid as invalid:
            problems += invalid.problems
    clashes = [*_same_name(loaded), *_same_target(loaded)]
    problems += [problem for _, problem in clashes]
    out = {file for file, _ in clashes}
    return Folder({entry.definition.name: entry for entry in loaded if entry.file not in out}, tuple(problems))


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
                        f"{entry.file}:{entry.line}",
                        found="also in " + ", ".join(others),
                        do="give each replicator a name of its own",
                    ),
                )


def _same_target(loaded: list[Loaded]) -> Iterable[tuple[str, Problem]]:
    by_place: defaultdict[tuple[str, str, str], list[Loaded]] = defaultdict(list)
    for entry in loaded:
        target = entry.definition.target
        by_place[target.type, target.location.rstrip("/"), "" if target.location else target.catalog].append(entry)
    for entries in by_place.values():
        for one, other in combinations(entries, 2):
            shared = _shared_table(one.definition, other.definition)
            if shared and one.definition.name != other.definition.name:
                yield _clash(one, other, shared)
                yield _clash(other, one, shared)


def _clash(entry: Loaded, other: Loaded, table: str) -> tuple[str, Problem]:
    target = entry.definition.target
    return (
        entry.file,
        Problem(
            "DEF015",
            f"{entry.definition.name} and {other.definition.name} would write the same target table",
            f"{entry.file}:{entry.line}",
            found=f"{table} in {target.location or target.catalog}, also in {other.file}",
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
