"""The application that Airflow's API server mounts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from airflow.api_fastapi.app import get_auth_manager
from fastapi import FastAPI

from airflow_cdc_provider import __version__
from airflow_cdc_provider.ui.problems import add_error_handlers
from airflow_cdc_provider.ui.responses import add_headers_and_bound_bodies
from airflow_cdc_provider.ui.routes import (
    change_log,
    columns,
    commands,
    pages,
    previews,
    quarantine,
    questions,
    replicators,
)

API = "/api/v1"


def create_app() -> FastAPI:
    """Without FastAPI's own pages of documentation: they would be readable without a login."""
    app = FastAPI(
        title="airflow-cdc-provider",
        version=__version__,
        description="Replicators, their tables, and commands about them.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=_lifespan,
    )
    app.middleware("http")(add_headers_and_bound_bodies)
    add_error_handlers(app)
    app.include_router(pages.router, include_in_schema=False)
    app.include_router(replicators.router, prefix=API, tags=["replicators"])
    app.include_router(columns.router, prefix=API, tags=["replicators"])
    app.include_router(change_log.router, prefix=API, tags=["change log"])
    app.include_router(previews.router, prefix=API, tags=["previews"])
    app.include_router(quarantine.router, prefix=API, tags=["quarantine"])
    app.include_router(commands.router, prefix=API, tags=["commands"])
    app.include_router(questions.router, prefix=API, tags=["questions"])
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Airflow's own dependencies look for the auth manager in the application that serves the request."""
    app.state.auth_manager = get_auth_manager()
    yield
