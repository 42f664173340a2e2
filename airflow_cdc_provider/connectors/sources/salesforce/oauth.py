"""Request access tokens with the OAuth flows."""

from __future__ import annotations

import time
from base64 import b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_cdc_provider.connectors.sources.salesforce.access import Access, Flow
from airflow_cdc_provider.connectors.sources.salesforce.ids import full_id, is_id
from airflow_cdc_provider.connectors.sources.salesforce.refresh_tokens import stored_token
from airflow_cdc_provider.core.errors import CheckFailed, IdentityChanged, Problem, SourceUnreachable

if TYPE_CHECKING:
    from requests import Response, Session

TOKEN_PATH = "/services/oauth2/token"
JWT_VALID_S = 180
TIMEOUT_S = (10, 60)


@dataclass(frozen=True)
class AccessToken:
    """``instance_url`` is without path, ``org_id`` in 18 characters. ``repr`` shows no secret."""

    access_token: str = field(repr=False)
    instance_url: str
    org_id: str


class Login:
    """Requests tokens. If Salesforce rotates refresh tokens, the new one is stored before the access token is used."""

    def __init__(self, access: Access, session: Session) -> None:
        self.access = access
        self._session = session

    def token(self) -> AccessToken:
        """Raises CheckFailed if the login is rejected (CON009) or a new refresh token cannot be stored (CON014),
        SourceUnreachable if the server fails, and IdentityChanged (SRC032) if the token is for another org than the
        connection's ``organization_id``."""
        if self.access.flow is not Flow.REFRESH_TOKEN:
            return self._parse_token(self._request_token())
        with stored_token(self.access) as refresh:
            body = self._request_token(refresh.token)
            if (renewed := body.get("refresh_token")) and renewed != refresh.token:
                refresh.replace(renewed)
        return self._parse_token(body)

    def _request_token(self, refresh_token: str = "") -> dict[str, Any]:
        from requests import RequestException

        try:
            response = self._session.post(
                self.access.login_url + TOKEN_PATH,
                data=self._form(refresh_token),
                headers=self._headers(),
                timeout=TIMEOUT_S,
                proxies=dict(self.access.proxies),
                allow_redirects=False,
            )
        except RequestException as error:
            raise SourceUnreachable(
                self._problem("CON010", "the login server cannot be reached", type(error).__name__, "check the network")
            ) from error
        return self._parse_response(response)

    def _form(self, refresh_token: str) -> dict[str, str]:
        access = self.access
        form = {"grant_type": access.flow.value}
        match access.flow:
            case Flow.CLIENT_CREDENTIALS:
                return form
            case Flow.JWT:
                return form | {"assertion": self._assertion()}
            case Flow.REFRESH_TOKEN:
                secret = {"client_secret": access.consumer_secret} if access.consumer_secret else {}
                return form | {"client_id": access.consumer_key, "refresh_token": refresh_token} | secret

    def _headers(self) -> dict[str, str]:
        if self.access.flow is not Flow.CLIENT_CREDENTIALS:
            return {}
        pair = f"{self.access.consumer_key}:{self.access.consumer_secret}"
        return {"Authorization": f"Basic {b64encode(pair.encode()).decode('ascii')}"}

    def _assertion(self) -> str:
        import jwt

        claims = {
            "iss": self.access.consumer_key,
            "sub": self.access.username,
            "aud": self.access.audience,
            "exp": int(time.time()) + JWT_VALID_S,
        }
        try:
            return jwt.encode(claims, self.access.private_key, algorithm="RS256")
        # An invalid key raises errors of many classes, whose texts may quote it.
        except Exception:
            raise CheckFailed(
                self._problem(
                    "CON012", "the private key cannot be used", "no RSA key in PEM form", "correct `private_key`"
                )
            ) from None

    def _parse_response(self, response: Response) -> dict[str, Any]:
        try:
            body = response.json()
        except ValueError:
            body = {}
        if response.status_code == 200 and isinstance(body, dict) and body.get("access_token"):
            return body
        error = body if isinstance(body, dict) else {}
        code, text = error.get("error", ""), error.get("error_description", "")
        found = f"HTTP {response.status_code} {code}: {text}".rstrip(": ")
        if response.status_code >= 500 or response.status_code == 429 or error.get("error") in TEMPORARY:
            raise SourceUnreachable(self._problem("CON013", "the login server failed", found, "try again"))
        raise CheckFailed(
            self._problem(
                "CON009",
                "the server rejects the login",
                found,
                "correct the connection or the app's policies; the JWT flow also requires synchronised clocks and an"
                " app that is approved for the user",
            )
        )

    def _parse_token(self, body: dict[str, Any]) -> AccessToken:
        """The identity URL ends in the ids of org and user."""
        instance, identity = urlsplit(body.get("instance_url", "")), urlsplit(body.get("id", ""))
        ids = identity.path.rstrip("/").split("/")[-2:]
        if not instance.netloc or len(ids) != 2 or not all(map(is_id, ids)):
            raise CheckFailed(
                self._problem(
                    "CON009", "the login response does not identify the org", "no org id", "check `login_url`"
                )
            )
        org_id = full_id(ids[0])
        expected = self.access.org_id
        if expected and (not is_id(expected) or full_id(expected) != org_id):
            raise IdentityChanged.of(
                "SRC032",
                "the connection leads to another org than its `organization_id`",
                where=f"connection {self.access.connection_id}",
                found=org_id,
                allowed=expected,
                do="correct `organization_id` or the credentials in the extra of the connection",
            )
        return AccessToken(body["access_token"], f"{instance.scheme}://{instance.netloc}", org_id)

    def _problem(self, code: str, what: str, found: str, do: str) -> Problem:
        where = f"{self.access.login_url}, connection {self.access.connection_id}"
        return Problem(code, what, where=where, found=found, do=do)


TEMPORARY = frozenset({"unknown_error", "server_error", "temporarily_unavailable"})
