"""The YAML of a definition: programs have only definitions that a user can write."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass, replace
from math import ceil
from typing import Any

import yaml

from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.loader.files import load_text


def as_loaded(definition: Definition) -> Definition:
    """The definition as the loader reads it. The durations of its source stay: a YAML has whole seconds. Raises
    DefinitionInvalid."""
    body = _set(definition)
    body["source"] |= {key: f"{ceil(value)}s" for key, value in body["source"].items() if isinstance(value, float)}
    return replace(load_text(yaml.safe_dump(body).encode(), "program.yaml").definition, source=definition.source)


def _set(value: Any) -> Any:
    """Without the fields that have their defaults. The options of a source or target are keys beside the others."""
    if is_dataclass(value):
        given = ((field.name, getattr(value, field.name), _default(field)) for field in fields(value))
        entries = {name: _set(entry) for name, entry, default in given if entry != default}
        return entries | entries.pop("options", {})
    if isinstance(value, tuple):
        return [_set(entry) for entry in value]
    return to_plain(value)


def _default(field: Any) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
