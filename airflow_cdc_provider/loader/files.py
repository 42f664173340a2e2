"""Loads definitions from files and folders, and finds clashes between them."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

from airflow_cdc_provider.core.errors import DefinitionInvalid, Problem
from airflow_cdc_provider.core.spec.definition import Definition, TableRule, Target
from airflow_cdc_provider.core.spec.selection import is_pattern, matches
from airflow_cdc_provider.loader.builder import Builder, Unusable
from airflow_cdc_provider.loader.checks import check
from airflow_cdc_provider.loader.locations import finder
from airflow_cdc_provider.loader.nested_folders import Overlap, overlaps, overlaps_between, used_folders
from airflow_cdc_provider.loader.report import Report
from airflow_cdc_provider.loader.shared_locations import location_text, shared_location_keys
from airflow_cdc_provider.loader.types import table_naming
from airflow_cdc_provider.loader.yaml_tree import MAX_BYTES, read_tree

APART = "folders apart from one another for staging, tables, stages, and the files of a source"


@dataclass(frozen=True)
class Loaded:
    """A definition with its location and warnings. ``line``: the line of its name."""

    definition: Definition
    file: str
    line: int
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class ReplicatorFolder:
    """``loaded``: by name. ``problems``: of the omitted files."""

    loaded: dict[str, Loaded]
    problems: tuple[Problem, ...] = ()


def load_text(data: bytes, file: str) -> Loaded:
    """The definition in ``data``; ``file`` is its name in messages. Raises DefinitionInvalid with all problems."""
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
    if definition:
        _check_nested_folders(definition, builder)
    if report.problems or definition is None:
        raise DefinitionInvalid(*report.problems)
    return Loaded(definition, file, builder.locations["name",].line, report.warnings)


def load_file(path: str | Path) -> Loaded:
    """The definition in a file. Raises DefinitionInvalid with all problems; also if the file cannot be read
    (DEF009)."""
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise DefinitionInvalid.of(
            "DEF009", "the file cannot be read", str(path), error.strerror or type(error).__name__
        ) from error
    return load_text(data, str(path))


def load_folder(folder: str | Path) -> ReplicatorFolder:
    """As ``load_folders``, of one folder."""
    return load_folders([folder])


def load_folders(folders: Iterable[str | Path]) -> ReplicatorFolder:
    """All ``*.yaml`` and ``*.yml`` files of these folders. Replicators that share a name or a target table are
    omitted."""
    loaded: list[Loaded] = []
    problems: list[Problem] = []
    for path in (path for folder in folders for path in _files(Path(folder))):
        try:
            loaded.append(load_file(path))
        except DefinitionInvalid as invalid:
            problems += invalid.problems
    clashes = _clashes(loaded)
    problems += [problem for file_problems in clashes.values() for problem in file_problems]
    return ReplicatorFolder(
        {entry.definition.name: entry for entry in loaded if entry.file not in clashes}, tuple(problems)
    )


def find_clashes(loaded: Iterable[Loaded]) -> dict[str, list[Problem]]:
    """By file: problems of a name or target table that it shares with another of these files, or with any file in their
    folders. Files that cannot be loaded are skipped."""
    known = {Path(entry.file).resolve(): entry for entry in loaded}
    given = {entry.file for entry in known.values()}
    neighbours = {path.resolve() for folder in {path.parent for path in known} for path in _files(folder)}
    for path in sorted(neighbours - known.keys()):
        with contextlib.suppress(DefinitionInvalid):
            known[path] = load_file(path)
    return {file: problems for file, problems in _clashes(list(known.values())).items() if file in given}


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml"))


def _check_nested_folders(definition: Definition, builder: Builder) -> None:
    reported: set[tuple[str | int, ...]] = set()
    for overlap in overlaps(list(used_folders(definition))):
        one, other = overlap.one, overlap.other
        if other.key not in reported:
            reported.add(other.key)
            builder.report.problem(
                "DEF104",
                f"{other.what} and {one.what} are in one another",
                finder(builder, ())(*other.key),
                found=f"{other.shown}, {one.shown}",
                allowed=APART,
                do=_set_apart(definition.name, overlap),
            )


def _set_apart(name: str, overlap: Overlap) -> str:
    """Copies stay where they are: it is the change log that is moved."""
    if not overlap.of_staging:
        return f"set another {' '.join(map(str, overlap.other.key))}"
    return f"set another staging location; if {name} has run before, first `airflow cdc move {name} --staging URL`"


def _clashes(loaded: list[Loaded]) -> dict[str, list[Problem]]:
    problems: defaultdict[str, list[Problem]] = defaultdict(list)
    for file, problem in (*_same_name(loaded), *_same_target(loaded), *_nested_folders(loaded)):
        problems[file].append(problem)
    return dict(problems)


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
                        do="use a different name for each replicator",
                    ),
                )


def _same_target(loaded: list[Loaded]) -> Iterable[tuple[str, Problem]]:
    for first, second in combinations(loaded, 2):
        if first.definition.name == second.definition.name:
            continue
        for one, other in product(first.definition.all_targets, second.definition.all_targets):
            if keys := shared_location_keys(one, other):
                shared = _shared_table(one, other, first.definition, second.definition)
                location = location_text(one, keys)
                if shared:
                    yield _clash(first, second, shared, location)
                    yield _clash(second, first, shared, location)


def _nested_folders(loaded: list[Loaded]) -> Iterable[tuple[str, Problem]]:
    folders = [(entry, list(used_folders(entry.definition))) for entry in loaded]
    for (first, of_first), (second, of_second) in combinations(folders, 2):
        certain = (overlap for overlap in overlaps_between(of_first, of_second) if overlap.certain)
        overlap = next(certain, None)
        if overlap and first.definition.name != second.definition.name:
            for entry, other in ((first, second), (second, first)):
                yield (
                    entry.file,
                    Problem(
                        "DEF104",
                        f"{entry.definition.name} and {other.definition.name} have folders in one another",
                        f"{entry.file}:{entry.line} name",
                        found=f"{overlap.one.shown} and {overlap.other.shown}, also in {other.file}",
                        allowed=APART,
                        do="set another location in one of them; `airflow cdc move NAME --staging URL` moves staging"
                        " of a replicator that has run before",
                    ),
                )


def _clash(entry: Loaded, other: Loaded, table: str, location: str) -> tuple[str, Problem]:
    return (
        entry.file,
        Problem(
            "DEF015",
            f"{entry.definition.name} and {other.definition.name} would write the same target table",
            f"{entry.file}:{entry.line} name",
            found=f"{table} in {location}, also in {other.file}",
            allowed="one writer per table",
            do="set another location or another target name in one of them; a key that only one of them has, as"
            " `project`, may have the same value by the connection: set it in both",
        ),
    )


def _shared_table(one: Target, other_target: Target, first: Definition, second: Definition) -> str:
    """A target table that both would write into these targets, judged by names without the sources; empty if there is
    none."""
    name_of = table_naming(one.type)
    for rule in (rule for rule in first.tables if rule.has_copy_in(one.name)):
        for other in (rule for rule in second.tables if rule.has_copy_in(other_target.name)):
            if _overlap(rule, other) or _overlap(other, rule):
                return rule.source if rule.source == other.source else f"{rule.source} and {other.source}"
            if not is_pattern(rule.source) and not is_pattern(other.source):
                names = [(each.target or name_of(each.source)).lower() for each in (rule, other)]
                if names[0] == names[1]:
                    return names[0]
    return ""


def _overlap(pattern: TableRule, rule: TableRule) -> bool:
    """Whether a pattern of one replicator matches a table, or the pattern, of the other."""
    return is_pattern(pattern.source) and not rule.target and matches(pattern.source, rule.source)
