"""Row images as raw JSON members: values keep their spelling, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from json.decoder import scanstring  # type: ignore[attr-defined]

_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def members(image: str) -> Iterator[tuple[str, str]]:
    """Names and raw values of a JSON object without white space between its members. Raises ValueError where the text
    is none."""
    at = 1
    while image[at] != "}":
        name, at = scanstring(image, at + 1)
        _, end = _scan(image, at + 1)
        yield name, image[at + 1 : end]
        at = end + 1 if image[end] == "," else end


def elements(key: str) -> list[str]:
    """Raw values of a JSON array without white space between its elements."""
    at, values = 1, list[str]()
    while key[at] != "]":
        _, end = _scan(key, at)
        values.append(key[at:end])
        at = end + 1 if key[end] == "," else end
    return values


def key_image(names: Iterable[str], key: str) -> str:
    """The image with the columns of a canonical key alone."""
    return image_of(dict(zip(names, elements(key), strict=True)))


def image_of(values: Mapping[str, str]) -> str:
    """The opposite of ``members``."""
    return "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{value}" for name, value in values.items()) + "}"
