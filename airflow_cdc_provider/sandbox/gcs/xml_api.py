"""The XML API: what ``obstore`` and ``deltalake`` use."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.sax.saxutils import escape

from airflow_cdc_provider.sandbox.gcs.messages import Request, Response, media
from airflow_cdc_provider.sandbox.gcs.objects import PAGE, Buckets, NotFound, PreconditionFailed, Stored

STATUS = {"NoSuchBucket": 404, "NoSuchKey": 404, "NoSuchUpload": 404, "PreconditionFailed": 412}


def answer(buckets: Buckets, request: Request) -> Response:
    bucket, name = request.path[0], "/".join(request.path[1:])
    try:
        if not name:
            return _list(buckets, request, bucket)
        return _object(buckets, request, bucket, name)
    except NotFound as error:
        return failed(str(error))
    except PreconditionFailed:
        return failed("PreconditionFailed")


def failed(code: str, status: int = 0) -> Response:
    return _xml("Error", f"<Code>{code}</Code><Message>{code}</Message>", status or STATUS[code])


def _object(buckets: Buckets, request: Request, bucket: str, name: str) -> Response:
    query = request.query
    match request.method:
        case "GET" | "HEAD":
            return media(request, buckets.get(bucket, name, _number(query.get("generation"))))
        case "DELETE" if "uploadId" in query:
            buckets.end(query["uploadId"])
        case "DELETE":
            buckets.delete(bucket, name, _number(request.headers.get("x-goog-if-generation-match")))
        case "PUT" if "uploadId" in query:
            buckets.put_part(query["uploadId"], int(query["partNumber"]), request.body)
            return Response(200, b"", {"ETag": f'"{query["partNumber"]}"'})
        case "PUT":
            return _headers(_put(buckets, request, bucket, name))
        case "POST" if "uploads" in query:
            buckets.require_bucket(bucket)
            content = _elements(Bucket=bucket, Key=name, UploadId=buckets.begin())
            return _xml("InitiateMultipartUploadResult", content)
        case "POST" if "uploadId" in query:
            return _complete(buckets, request, bucket, name)
        case _:
            return failed("MethodNotAllowed", 405)
    return Response(204)


def _put(buckets: Buckets, request: Request, bucket: str, name: str) -> Stored:
    headers = request.headers
    expected = _number(headers.get("x-goog-if-generation-match"))
    content, kind = request.body, headers.get("content-type", "application/octet-stream")
    if source := headers.get("x-goog-copy-source"):
        copied_bucket, _, copied_name = source.lstrip("/").partition("/")
        content = buckets.get(copied_bucket, copied_name).content
    return buckets.put(bucket, name, content, kind, if_generation=expected)


def _complete(buckets: Buckets, request: Request, bucket: str, name: str) -> Response:
    """The body lists the numbers of the parts in order."""
    upload = request.query["uploadId"]
    parts, listed = buckets.parts(upload), ElementTree.fromstring(request.body).iter()
    numbers = [int(element.text or "") for element in listed if element.tag.rpartition("}")[2] == "PartNumber"]
    if numbers != sorted(numbers) or not set(numbers) <= set(parts):
        return failed("InvalidPart", 400)
    expected = _number(request.headers.get("x-goog-if-generation-match"))
    stored = buckets.put(bucket, name, b"".join(parts[number] for number in numbers), if_generation=expected)
    buckets.end(upload)
    content = _elements(Bucket=bucket, Key=name, ETag=f'"{stored.etag}"')
    return _xml("CompleteMultipartUploadResult", content, headers=_headers(stored).headers)


def _list(buckets: Buckets, request: Request, bucket: str) -> Response:
    query = request.query
    after = query.get("continuation-token") or query.get("start-after", "")
    limit = min(int(query.get("max-keys", PAGE)), PAGE)
    page = buckets.page(bucket, query.get("prefix", ""), query.get("delimiter", ""), after, limit)
    entries = [
        "<Contents>"
        + _elements(
            Key=stored.name,
            LastModified=stored.updated.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            ETag=f'"{stored.etag}"',
            Size=str(len(stored.content)),
            Generation=str(stored.generation),
        )
        + "</Contents>"
        for stored in page.objects
    ]
    entries += [f"<CommonPrefixes>{_elements(Prefix=prefix)}</CommonPrefixes>" for prefix in page.prefixes]
    more = {"NextContinuationToken": page.next_after} if page.next_after else {}
    truncated = "true" if more else "false"
    return _xml("ListBucketResult", _elements(Name=bucket, IsTruncated=truncated, **more) + "".join(entries))


def _headers(stored: Stored) -> Response:
    return Response(200, b"", {"ETag": f'"{stored.etag}"', "x-goog-generation": str(stored.generation)})


def _number(text: str | None) -> int | None:
    return int(text) if text else None


def _elements(**texts: str) -> str:
    return "".join(f"<{name}>{escape(text)}</{name}>" for name, text in texts.items())


def _xml(root: str, content: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    text = f'<?xml version="1.0" encoding="UTF-8"?><{root}>{content}</{root}>'
    return Response(status, text.encode(), {"Content-Type": "application/xml; charset=UTF-8", **(headers or {})})
