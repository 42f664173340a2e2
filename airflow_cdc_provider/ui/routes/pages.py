"""The page: three files without data. What it shows, it asks of the API, as the user."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.responses import FileResponse

from airflow_cdc_provider.ui.access import signed_in
from airflow_cdc_provider.ui.responses import json_response

FILES = Path(__file__).parents[1] / "page"

router = APIRouter(dependencies=[Depends(signed_in)])


@router.get("/")
def get_page() -> Response:
    return FileResponse(FILES / "index.html", media_type="text/html")


@router.get("/page.js")
def get_script() -> Response:
    return FileResponse(FILES / "page.js", media_type="text/javascript")


@router.get("/page.css")
def get_style() -> Response:
    return FileResponse(FILES / "page.css", media_type="text/css")


@router.get("/api/v1/openapi.json")
def get_openapi(request: Request) -> Response:
    """The OpenAPI document of this API."""
    app: FastAPI = request.app
    return json_response(request, app.openapi())
