"""One module makes the sessions in which Spark reads texts of a source, and no other sets how it reads them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import airflow_cdc_provider
from airflow_cdc_provider.core.decisions.statement_settings import SETTINGS_LIKE_THESE, STATEMENT_SETTINGS

PACKAGE = Path(airflow_cdc_provider.__file__).parent
ROOT = PACKAGE.parent
SESSIONS = "spark_jobs/runtime/sessions.py"
LISTED = "airflow_cdc_provider/core/decisions/statement_settings.py"
MAKES_SESSIONS = frozenset({"builder", "getOrCreate", "newSession", "getActiveSession"})


def modules() -> Iterator[tuple[str, ast.Module]]:
    for folder in (PACKAGE, ROOT / "spark_jobs", ROOT / "dags"):
        for path in sorted(folder.rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def test_sessions_are_made_in_one_module() -> None:
    found = {
        name
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in MAKES_SESSIONS
    }
    assert found == {SESSIONS}


def test_no_other_module_names_a_setting_of_statements() -> None:
    found = {
        name
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if node.value in STATEMENT_SETTINGS or any(fnmatch(node.value, like) for like in SETTINGS_LIKE_THESE)
    }
    assert found == {LISTED}
