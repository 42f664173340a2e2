"""Locations of staging and targets: a folder that all hosts share, or a prefix in a bucket."""

from __future__ import annotations

import re
from dataclasses import dataclass

FOLDER = "file"
S3 = "s3"

ALLOWED = "an absolute path, file:///path, or s3://bucket/path"
PATTERN = r"^(/|file:///|s3://[a-z0-9][a-z0-9.\-]{1,61}[a-z0-9](/|$))[^\s?#]*$"


@dataclass(frozen=True)
class Location:
    """``path`` is the absolute folder, or the prefix in ``bucket``; it ends without a slash."""

    scheme: str
    bucket: str
    path: str


def parse_location(location: str) -> Location:
    """Parse a location that matches ``PATTERN``. Any other URL keeps its scheme, so that the caller can reject it."""
    scheme, separator, rest = location.partition("://")
    if not separator or scheme == FOLDER:
        return Location(FOLDER, "", (rest if separator else location).rstrip("/"))
    bucket, _, prefix = rest.partition("/")
    return Location(scheme, bucket, prefix.rstrip("/"))


def location_error(location: str) -> str:
    """Why a location that matches ``PATTERN`` is invalid; empty if it is valid."""
    segments = re.sub("^[a-z0-9]+://", "", location).rstrip("/").split("/")
    if ".." in segments:
        return "a path must not contain `..`"
    if not location.startswith(f"{S3}://"):
        return ""
    if "." in segments or "" in segments[1:]:
        return "object keys must not contain empty segments or `.`"
    return ""
