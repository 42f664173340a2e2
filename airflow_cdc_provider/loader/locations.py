"""Where a value, or a missing one, is in the YAML."""

from __future__ import annotations

from collections.abc import Callable

from airflow_cdc_provider.loader.builder import Builder, Path
from airflow_cdc_provider.loader.report import YamlLocation


def finder(builder: Builder, base: Path) -> Callable[..., YamlLocation]:
    """The location of the value at a path below ``base``; if it is missing, of the mapping that it belongs to."""

    def find(*below: str | int) -> YamlLocation:
        path = (*base, *below)
        missing: list[str | int] = []
        while path not in builder.locations:
            missing.insert(0, path[-1])
            path = path[:-1]
        return builder.locations[path].below(*missing)

    return find
