"""GoogleSQL's own analyzer: names, types and syntax of statements and scripts against a catalogue of tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any

Columns = Mapping[str, str]
"""Names → types, as in DDL."""

Path = tuple[str, ...]
IF = re.compile(r"IF (.*) THEN RAISE USING MESSAGE = '\w+'; END IF", re.DOTALL)
ASSIGNED = re.compile(r"SET \w+ = (.*)")


def parse_spanner_ddl(statement: str) -> None:
    """Raises the error of the parser. It lacks roles, and a RENAME of several tables."""
    from zetasql.api import Parser
    from zetasql.types import LanguageFeature, LanguageOptions

    options = LanguageOptions.maximum_features()
    options.enabled_language_features = [
        *options.enabled_language_features,
        LanguageFeature.FEATURE_SPANNER_LEGACY_DDL,
    ]
    with named(statement):
        Parser(options).parse_statement(statement)


@contextmanager
def named(statement: str) -> Iterator[None]:
    """An error of the parser or the analyzer has the statement with it."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{error}\n{statement}") from error


@cache
def language() -> Any:
    """Starts the analyzer, which takes up to a minute and more where the machine is busy."""
    from zetasql.types import LanguageFeature, LanguageOptions

    options = LanguageOptions.maximum_features()
    options.enabled_language_features = [
        *options.enabled_language_features,
        LanguageFeature.FEATURE_COLLATION_SUPPORT,
    ]
    return options


class Catalogue:
    """``tables``: path → columns. ``variables``: of scripts, of type INT64."""

    def __init__(self, tables: Mapping[Path, Columns], variables: Iterable[str] = ()) -> None:
        self.tables = tables
        self.variables = tuple(variables)
        self._checked: set[str] = set()

    def check_script(self, script: str) -> None:
        """Raises the error of the analyzer."""
        from zetasql.api import Parser

        Parser(language()).parse_script(script)
        for statement in filter(None, script.split(";\n")):
            if not statement.startswith("DECLARE "):
                self.check(query_of(statement))

    def check(self, statement: str) -> None:
        """Raises the error of the analyzer."""
        if statement in self._checked:
            return
        self._checked.add(statement)
        from zetasql.api import Analyzer
        from zetasql.types import AnalyzerOptions, Type, TypeKind

        number = Type(type_kind=TypeKind.TYPE_INT64)
        row_count = AnalyzerOptions.SystemVariable(name_path=["row_count"], type=number)
        options = AnalyzerOptions(language_options=language(), system_variables=[row_count])
        with named(statement):
            Analyzer(options, self._built).analyze_statement(statement)

    @cached_property
    def _built(self) -> Any:
        from zetasql import types

        number = types.Type(type_kind=types.TypeKind.TYPE_INT64)
        constants = [types.SimpleConstant(name_path=[name], type=number) for name in self.variables]
        functions = types.ZetaSQLBuiltinFunctionOptions(language_options=language())
        root = types.SimpleCatalog(name="root", builtin_function_options=functions, constant=constants)
        for path, columns in self.tables.items():
            catalog = root
            for name in path[:-1]:
                found = next((one for one in catalog.catalog if one.name == name), None)
                if found is None:
                    found = types.SimpleCatalog(name=name)
                    catalog.catalog.append(found)
                catalog = found
            catalog.table.append(table(path[-1], columns))
        return root


KINDS = {"FLOAT64": "DOUBLE"}
"""The analyzer's names of types that it calls otherwise than DDL."""


def table(name: str, columns: Columns) -> Any:
    from zetasql.types import SimpleColumn, SimpleTable, Type, TypeKind

    kinds = {column: TypeKind[f"TYPE_{KINDS.get(kind, kind)}"] for column, kind in columns.items()}
    made = [
        SimpleColumn(name=column, type=Type(type_kind=kind), is_writable_column=True) for column, kind in kinds.items()
    ]
    return SimpleTable(name=name, column=made)


def query_of(statement: str) -> str:
    """What of a statement of a script can be analyzed by itself."""
    expression = IF.fullmatch(statement) or ASSIGNED.fullmatch(statement)
    return f"SELECT {expression[1]}" if expression else statement
