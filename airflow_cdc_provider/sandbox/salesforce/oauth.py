"""OAuth tokens: three flows that issue them. A token expires two hours after its last use."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

import jwt

from airflow_cdc_provider.sandbox.salesforce.clock import Clock
from airflow_cdc_provider.sandbox.salesforce.users import User

IDLE_LIMIT_S = 2 * 3600
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
AUDIENCES = ("https://login.salesforce.com", "https://test.salesforce.com")
SKEW_S = 180


class OAuthError(Exception):
    """An error of the token endpoint: ``error`` and ``error_description``, with status 400 or 401."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(f"{error}: {description}")
        self.error, self.description = error, description


@dataclass
class App:
    """An external client app. ``run_as`` is the user of client credentials; ``public_key`` (PEM) verifies JWTs.

    ``rotates``: each use of a refresh token replaces it with a new one.
    """

    client_id: str
    client_secret: str
    run_as: str
    public_key: str = ""
    rotates: bool = False


@dataclass
class Session:
    user: User
    used_ms: int


@dataclass
class Tokens:
    """The first 15 characters of ``org_id`` are the prefix of every token."""

    clock: Clock
    org_id: str
    users: dict[str, User]
    apps: dict[str, App] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    refresh_tokens: dict[str, tuple[str, str]] = field(default_factory=dict)

    def issue(self, user: User) -> str:
        token = f"{self.org_id[:15]}!{secrets.token_urlsafe(48)}"
        self.sessions[token] = Session(user, self.clock.now_ms())
        return token

    def user(self, token: str) -> User | None:
        """The user of a token, None if it is unknown or expired."""
        session = self.sessions.get(token)
        now = self.clock.now_ms()
        if session is None or now - session.used_ms > IDLE_LIMIT_S * 1000:
            return None
        session.used_ms = now
        return session.user

    def expire(self) -> None:
        """Expire all access tokens. Refresh tokens stay valid."""
        self.sessions.clear()

    def grant_refresh(self, client_id: str, username: str) -> str:
        """A refresh token, as issued when a user approves the app in the browser."""
        token = f"5Aep861{secrets.token_urlsafe(32)}"
        self.refresh_tokens[token] = (client_id, username)
        return token

    def grant(self, form: dict[str, str]) -> dict[str, Any]:
        """The part of the response that depends on the flow. Raises OAuthError."""
        match form.get("grant_type"):
            case "client_credentials":
                app = self._app(form, needs_secret=True)
                return {"access_token": self.issue(self._user_named(app.run_as)), "scope": "api"}
            case "refresh_token":
                return self._refresh(form)
            case kind if kind == JWT_BEARER:
                return {"access_token": self.issue(self._user_of_jwt(form.get("assertion", ""))), "scope": "api"}
            case _:
                raise OAuthError("unsupported_grant_type", "grant type not supported")

    def _app(self, form: dict[str, str], needs_secret: bool) -> App:
        app = self.apps.get(form.get("client_id", ""))
        if app is None:
            raise OAuthError("invalid_client_id", "client identifier invalid")
        secret = form.get("client_secret")
        if (needs_secret or secret) and secret != app.client_secret:
            raise OAuthError("invalid_client", "invalid client credentials")
        return app

    def _user_named(self, username: str) -> User:
        user = next((user for user in self.users.values() if user.username == username), None)
        if user is None:
            raise OAuthError("invalid_grant", "user hasn't approved this consumer")
        return user

    def _refresh(self, form: dict[str, str]) -> dict[str, Any]:
        app = self._app(form, needs_secret=False)
        token = form.get("refresh_token", "")
        client_id, username = self.refresh_tokens.get(token, ("", ""))
        if client_id != app.client_id:
            raise OAuthError("invalid_grant", "expired access/refresh token")
        granted = {"access_token": self.issue(self._user_named(username)), "scope": "refresh_token api"}
        if app.rotates:
            del self.refresh_tokens[token]
            granted["refresh_token"] = self.grant_refresh(client_id, username)
        return granted

    def _user_of_jwt(self, assertion: str) -> User:
        """Times in the claims are compared with the org's clock."""
        try:
            issuer = jwt.decode(assertion, options={"verify_signature": False}).get("iss", "")
            app = self.apps.get(issuer)
            if app is None:
                raise OAuthError("invalid_client_id", "client identifier invalid")
            claims = jwt.decode(
                assertion,
                app.public_key,
                algorithms=["RS256"],
                options={"verify_exp": False, "verify_aud": False, "verify_iat": False, "verify_nbf": False},
            )
        except jwt.PyJWTError as error:
            raise OAuthError("invalid_grant", "invalid assertion") from error
        now = self.clock.now_ms() / 1000
        if claims.get("aud") not in AUDIENCES:
            raise OAuthError("invalid_grant", "audience is invalid")
        if not now < claims.get("exp", 0) <= now + 300 + SKEW_S:
            raise OAuthError("invalid_grant", "expired authorization code")
        return self._user_named(claims.get("sub", ""))
