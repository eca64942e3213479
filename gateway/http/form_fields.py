"""The fields of a form that was sent, read anew each time: what was typed, passwords too, is kept
by nobody once the request is answered."""

from typing import Any
from urllib.parse import parse_qsl

from litestar import Request
from litestar.datastructures import UploadFile

from gateway.errors import RequestTooLarge, Unprocessable

FIELDS_MAX = 10_000
OPEN_BYTES_MAX = 64 * 1024
"""Of what anyone may send, logged in or not."""
URL_ENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"

Field = tuple[str, str | UploadFile]


async def form_fields(request: Request[Any, Any, Any]) -> list[Field]:
    """Each field and its value, those of one name in order; none where the body is no form.

    Raises RequestTooLarge for more than FIELDS_MAX fields, Unprocessable where it is not UTF-8, and
    whatever Litestar raises for a body over the route's maximum or a multipart that is none.
    """
    kind = request.content_type[0]
    if kind == URL_ENCODED:
        # Litestar's own parser keeps the last 1024 bodies in memory, whoever sent them.
        return _url_encoded(await request.body())
    if kind == MULTIPART:
        try:
            return list((await request.form()).multi_items())
        except (UnicodeDecodeError, LookupError) as error:
            raise _not_utf8() from error
    return []


def _url_encoded(body: bytes) -> list[Field]:
    if body.count(b"&") >= FIELDS_MAX:
        raise RequestTooLarge(f"a form has at most {FIELDS_MAX} fields")
    try:
        return [*parse_qsl(body.decode(), keep_blank_values=True, errors="strict")]
    except UnicodeDecodeError as error:
        raise _not_utf8() from error


def _not_utf8() -> Unprocessable:
    return Unprocessable("the form is not UTF-8")
