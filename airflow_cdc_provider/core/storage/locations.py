"""Locations of staging, targets and event files: a folder that all hosts share, or a prefix in an object store."""

from __future__ import annotations

import re
from dataclasses import dataclass

FOLDER = "file"
S3 = "s3"
GS = "gs"
ABFSS = "abfss"

ALLOWED = (
    "an absolute path, file:///path, s3://bucket/path, gs://bucket/path, abfss://container@account.dfs.core.windows.net"
    "/path; with .blob. in place of .dfs. for accounts without hierarchical namespace"
)
PATTERN = (
    r"^(/|file:///|s3://[a-z0-9][a-z0-9.\-]{1,61}[a-z0-9](/|$)|gs://[a-z0-9][a-z0-9._\-]{1,220}[a-z0-9](/|$)"
    r"|abfss://[a-z0-9][a-z0-9\-]{1,61}[a-z0-9]@[a-z0-9]{3,24}\.(dfs|blob)\.core\.windows\.net(/|$))[^\s?#]*$"
)


@dataclass(frozen=True)
class Location:
    """``path`` is the absolute folder, or the prefix in ``bucket``; it ends without a slash. In Azure, ``bucket`` is a
    container, and ``host`` the endpoint of its storage account."""

    scheme: str
    bucket: str
    path: str
    host: str = ""

    @property
    def account(self) -> str:
        """The storage account of Azure."""
        return self.host.partition(".")[0]

    @property
    def has_folders(self) -> bool:
        """Whether the store has folders of its own, which stay when their files are deleted: an account with
        hierarchical namespace."""
        return ".dfs." in self.host

    @property
    def credentials_scope(self) -> tuple[str, str]:
        """Spark has one set of credentials for all locations with the same scope: a bucket of S3, an account of Azure,
        all of Cloud Storage."""
        return self.scheme, {S3: self.bucket, ABFSS: self.account}.get(self.scheme, "")


def parse_location(location: str) -> Location:
    """Parse a location that matches ``PATTERN``. Any other URL keeps its scheme, so that the caller can reject it."""
    scheme, separator, rest = location.partition("://")
    if not separator or scheme == FOLDER:
        return Location(FOLDER, "", (rest if separator else location).rstrip("/"))
    authority, _, prefix = rest.partition("/")
    bucket, _, host = authority.partition("@")
    return Location(scheme, bucket, prefix.rstrip("/"), host)


def location_error(location: str) -> str:
    """Why a location that matches ``PATTERN`` is invalid; empty if it is valid."""
    segments = re.sub("^[a-z0-9]+://", "", location).rstrip("/").split("/")
    if ".." in segments:
        return "a path must not contain `..`"
    if parse_location(location).scheme == FOLDER:
        return ""
    if "." in segments or "" in segments[1:]:
        return "object keys must not contain empty segments or `.`"
    return ""
