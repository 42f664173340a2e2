"""The JSON API: what Hadoop's connector uses."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any
from urllib.parse import quote

from airflow_cdc_provider.sandbox.gcs.messages import Request, Response, media
from airflow_cdc_provider.sandbox.gcs.objects import PAGE, Buckets, NotFound, PreconditionFailed, Stored

JSON = {"Content-Type": "application/json; charset=UTF-8"}


def answer(buckets: Buckets, request: Request) -> Response:
    """``path`` begins behind ``storage/v1``."""
    try:
        match (request.method, *request.path):
            case "GET", "b", bucket:
                buckets.require_bucket(bucket)
                return body({"kind": "storage#bucket", "id": bucket, "name": bucket, "location": "US"})
            case "GET", "b", bucket, "storageLayout":
                buckets.require_bucket(bucket)
                return body({"kind": "storage#storageLayout", "hierarchicalNamespace": {"enabled": False}})
            case "GET", "b", bucket, "o":
                return _list(buckets, request, bucket)
            case _, "b", bucket, "o", name:
                return _object(buckets, request, bucket, name)
            case "POST", "b", bucket, "o", name, ("rewriteTo" | "copyTo") as verb, "b", to_bucket, "o", to_name:
                source = buckets.get(bucket, name)
                stored = buckets.put(
                    to_bucket, to_name, source.content, source.content_type, source.metadata, if_generation(request)
                )
                return _rewritten(stored) if verb == "rewriteTo" else body(resource(to_bucket, stored))
            case "POST", "b", bucket, "o", name, "moveTo", "o", to_name:
                return body(resource(bucket, buckets.move(bucket, name, to_name, if_generation(request))))
            case "POST", "b", bucket, "o", name, "compose":
                return _compose(buckets, request, bucket, name)
    except NotFound as error:
        return failed(404, "notFound", str(error))
    except PreconditionFailed:
        return failed(412, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.")
    return failed(405, "methodNotAllowed", request.method)


def failed(status: int, reason: str, message: str) -> Response:
    error = {"domain": "global", "reason": reason, "message": message}
    return body({"error": {"code": status, "message": message, "errors": [error]}}, status)


def body(content: dict[str, Any], status: int = 200) -> Response:
    return Response(status, json.dumps(content).encode(), JSON)


def resource(bucket: str, stored: Stored) -> dict[str, Any]:
    updated = stored.updated.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "kind": "storage#object",
        "id": f"{bucket}/{stored.name}/{stored.generation}",
        "name": stored.name,
        "bucket": bucket,
        "generation": str(stored.generation),
        "metageneration": "1",
        "contentType": stored.content_type,
        "storageClass": "STANDARD",
        "size": str(len(stored.content)),
        "md5Hash": b64encode(stored.md5).decode(),
        "etag": stored.etag,
        "timeCreated": updated,
        "updated": updated,
        **({"metadata": stored.metadata} if stored.metadata else {}),
    }


def if_generation(request: Request) -> int | None:
    text = request.query.get("ifGenerationMatch")
    return int(text) if text else None


def _object(buckets: Buckets, request: Request, bucket: str, name: str) -> Response:
    expected = if_generation(request)
    match request.method:
        case "GET":
            generation = request.query.get("generation")
            stored = buckets.get(bucket, name, int(generation) if generation else None)
            buckets.require_generation(bucket, name, expected)
            return media(request, stored) if request.query.get("alt") == "media" else body(resource(bucket, stored))
        case "DELETE":
            buckets.delete(bucket, name, expected)
            return Response(204)
    return failed(405, "methodNotAllowed", request.method)


def _list(buckets: Buckets, request: Request, bucket: str) -> Response:
    query = request.query
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    limit, after = min(int(query.get("maxResults", PAGE)), PAGE), query.get("pageToken", "")
    page = buckets.page(bucket, prefix, delimiter, after, limit, query.get("startOffset", ""))
    objects = page.objects
    if query.get("includeTrailingDelimiter") == "true":
        objects = objects + [folder for name in page.prefixes if (folder := _folder(buckets, bucket, name))]
    content: dict[str, Any] = {"kind": "storage#objects"}
    if objects:
        content["items"] = [resource(bucket, stored) for stored in objects]
    if page.prefixes:
        content["prefixes"] = page.prefixes
    if page.next_after:
        content["nextPageToken"] = page.next_after
    return body(content)


def _folder(buckets: Buckets, bucket: str, name: str) -> Stored | None:
    """The object that marks a folder, if there is one."""
    try:
        return buckets.get(bucket, name)
    except NotFound:
        return None


def _compose(buckets: Buckets, request: Request, bucket: str, name: str) -> Response:
    given = json.loads(request.body)
    content = b"".join(buckets.get(bucket, source["name"]).content for source in given["sourceObjects"])
    kind = given.get("destination", {}).get("contentType", "application/octet-stream")
    stored = buckets.put(bucket, name, content, kind, if_generation=if_generation(request))
    return body(resource(bucket, stored))


def _rewritten(stored: Stored) -> Response:
    size = str(len(stored.content))
    return body(
        {
            "kind": "storage#rewriteResponse",
            "totalBytesRewritten": size,
            "objectSize": size,
            "done": True,
            "resource": {"name": stored.name, "generation": str(stored.generation)},
        }
    )


def session_url(request: Request, bucket: str, upload: str) -> str:
    """Where the parts of a resumable upload are sent."""
    return f"{request.root}/upload/storage/v1/b/{quote(bucket)}/o?uploadType=resumable&upload_id={upload}"
