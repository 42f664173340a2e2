"""The files under docs/reference, and whether they are up to date.

The table of keys is written between the two marker lines of replicator.md. The other files are written whole.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from airflow_cdc_provider.loader.schema import json_schema
from airflow_cdc_provider.reference import metrics, schema_changes
from airflow_cdc_provider.reference.keys import key_table

BEGIN, END = "<!-- yaml:begin -->", "<!-- yaml:end -->"
PAGE = "docs/reference/replicator.md"
SCHEMA = "docs/reference/replicator.schema.json"
SCHEMA_CHANGES = "docs/reference/schema-changes.md"
METRICS = "docs/reference/metrics.md"


def outdated_files(root: Path) -> dict[Path, str]:
    """The files that are out of date → their new text."""
    expected = {
        root / PAGE: _between_markers((root / PAGE).read_text(), PAGE),
        root / SCHEMA: json.dumps(json_schema(), indent=2) + "\n",
        root / SCHEMA_CHANGES: schema_changes.page(),
        root / METRICS: metrics.page(),
    }
    return {path: text for path, text in expected.items() if not path.exists() or path.read_text() != text}


def _between_markers(text: str, name: str) -> str:
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{name} lacks the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{key_table()}\n{END}{after}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m airflow_cdc_provider.reference")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the checkout (default: the current folder)")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="write the files that are out of date")
    action.add_argument("--check", action="store_true", help="exit with 1 if a file is out of date")
    options = parser.parse_args(arguments)
    outdated = outdated_files(options.root)
    for path, text in outdated.items():
        print(f"{'out of date' if options.check else 'written'}: {path.relative_to(options.root)}")
        if options.write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return 1 if options.check and outdated else 0
