"""Texts of requests. PostgreSQL takes no NUL, and a control character changes what a terminal or a log shows."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from pydantic import Field

NO_CONTROLS = r"^[^\x00-\x1f\x7f]*$"

ReplicatorName = Annotated[str, Path(max_length=250, pattern=NO_CONTROLS)]
TableName = Annotated[str, Path(max_length=1000, pattern=NO_CONTROLS)]
Id = Annotated[str, Path(max_length=250, pattern=NO_CONTROLS)]
Line = Annotated[str, Field(max_length=1000, pattern=NO_CONTROLS)]
"""A line that other people read, as a reason."""
