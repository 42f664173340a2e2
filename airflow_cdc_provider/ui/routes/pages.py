"""The page: files without data. What it shows, it asks of the API, as the user."""

from __future__ import annotations

import pathlib
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Path, Request, Response, status
from fastapi.responses import FileResponse

from airflow_cdc_provider.ui.access import signed_in
from airflow_cdc_provider.ui.responses import json_response

FILES = pathlib.Path(__file__).parents[1] / "page"
MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css"}
SERVED = {file.name: MEDIA_TYPES[file.suffix] for file in FILES.iterdir() if file.suffix in MEDIA_TYPES}
"""File → its media type."""

router = APIRouter(dependencies=[Depends(signed_in)])


@router.get("/")
def get_page() -> Response:
    return FileResponse(FILES / "index.html", media_type="text/html")


@router.get("/{file}")
def get_file(file: Annotated[str, Path(max_length=100)]) -> Response:
    """A script, or the style."""
    if file not in SERVED:
        raise HTTPException(status.HTTP_404_NOT_FOUND, "the page has no such file")
    return FileResponse(FILES / file, media_type=SERVED[file])


@router.get("/api/v1/openapi.json")
def get_openapi(request: Request) -> Response:
    """The OpenAPI document of this API."""
    app: FastAPI = request.app
    return json_response(request, app.openapi())
