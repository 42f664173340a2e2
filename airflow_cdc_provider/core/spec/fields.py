"""Fields of the definition with their documentation."""

from __future__ import annotations

from dataclasses import field
from typing import Any

Scalar = str | int | float | bool
"""A value in the YAML."""


def doc(text: str, default: Any = ..., **more: Any) -> Any:
    """A field with documentation. ``default`` may be a factory (list, dict, tuple or a class).

    Further metadata for the loader and the JSON Schema: ``form`` (a key of ``loader.text_formats.FORMS``), ``minimum``
    and ``maximum`` of a number, ``non_empty`` (a list that is given must have an entry), ``choices`` (a registry of
    types), ``inline`` (accepts the keys that the class does not define), ``keys`` of a
    mapping without a form (``names``: they are names of the user's own, such as `access_tokens`, which say nothing of
    their values; else a key that names a secret is refused), ``needs`` (the key beside it without
    which it has no effect, unless it has its default)."""
    metadata = {"doc": text, **more}
    if default is ...:
        return field(metadata=metadata)
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)
