"""POST /services/oauth2/token and GET /services/oauth2/userinfo."""

from __future__ import annotations

import base64
import binascii
from urllib.parse import unquote

from airflow_cdc_provider.sandbox.salesforce.http import Request, Response, json_response
from airflow_cdc_provider.sandbox.salesforce.oauth import OAuthError
from airflow_cdc_provider.sandbox.salesforce.state import OrgState
from airflow_cdc_provider.sandbox.salesforce.users import User


def token(org: OrgState, request: Request) -> Response:
    form = request.form
    try:
        form |= _basic(request.headers.get("authorization", ""))
        granted = org.tokens.grant(form)
    except OAuthError as error:
        status = 401 if error.error == "invalid_client" else 400
        return json_response({"error": error.error, "error_description": error.description}, status)
    user = org.tokens.sessions[granted["access_token"]].user
    instance = f"{request.scheme}://{request.headers.get('host', '')}"
    return json_response(
        {
            **granted,
            "instance_url": instance,
            "id": f"{instance}/id/{org.org_id}/{user.id}",
            "token_type": "Bearer",
            "issued_at": str(org.clock.now_ms()),
            "signature": "c2FuZGJveA==",
        }
    )


def userinfo(org: OrgState, request: Request, user: User) -> Response:
    return json_response(
        {"user_id": user.id, "organization_id": org.org_id, "preferred_username": user.username, "active": True}
    )


def _basic(header: str) -> dict[str, str]:
    """Client id and secret of an Authorization header, if there is one."""
    if not header.startswith("Basic "):
        return {}
    try:
        client_id, _, secret = base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise OAuthError("invalid_client", "invalid client credentials") from error
    return {"client_id": unquote(client_id), "client_secret": unquote(secret)}
