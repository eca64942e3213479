"""What was typed into a form is read, and then forgotten."""

import pytest
from litestar import Request
from litestar._parsers import parse_url_encoded_form_data
from litestar.datastructures import UploadFile
from litestar.testing import RequestFactory
from litestar.types import HTTPReceiveMessage

from gateway.errors import RequestTooLarge, Unprocessable
from gateway.http.form_fields import FIELDS_MAX, MULTIPART, URL_ENCODED, Field, form_fields


async def fields_of(body: bytes, kind: str = URL_ENCODED) -> list[Field]:
    """The fields of a request with that body."""
    scope = RequestFactory().get("/", headers={"content-type": kind}).scope

    async def receive() -> HTTPReceiveMessage:
        return {"type": "http.request", "body": body, "more_body": False}

    return await form_fields(Request(scope, receive))


async def test_fields_are_read_in_order_with_the_empty_ones() -> None:
    """And what a browser writes for a space or a letter that is not ASCII."""
    found = await fields_of("a=1&b=&a=x+y%20z&ü=%C3%BC".encode())
    assert found == [("a", "1"), ("b", ""), ("a", "x y z"), ("ü", "ü")]
    assert await fields_of(b"") == []
    assert await fields_of(b'{"a": "1"}', "application/json") == []


@pytest.mark.parametrize("body", [b"a=\xff", b"a=%ff", b"%c3=1"])
async def test_what_is_not_utf8_is_refused(body: bytes) -> None:
    """It is not guessed at."""
    with pytest.raises(Unprocessable, match="not UTF-8"):
        await fields_of(body)


async def test_more_fields_than_any_form_has_are_not_read() -> None:
    """As many as it may have are."""
    body = b"a&" * (FIELDS_MAX - 1) + b"a"
    assert len(await fields_of(body)) == FIELDS_MAX
    with pytest.raises(RequestTooLarge):
        await fields_of(body + b"&a")


async def test_nobody_keeps_what_was_sent() -> None:
    """The framework's own reader keeps bodies, with the passwords in them: it is not asked."""
    before = parse_url_encoded_form_data.cache_info()
    await fields_of(b"password=correct-horse")
    assert parse_url_encoded_form_data.cache_info() == before


def part(name: str, content: bytes, *, more: bytes = b"") -> bytes:
    """One part of a multipart body."""
    head = b'--b\r\ncontent-disposition: form-data; name="' + name.encode() + b'"' + more
    return head + b"\r\n\r\n" + content + b"\r\n"


async def test_a_file_arrives_beside_texts() -> None:
    """A text in another encoding than it says is refused, and no error of ours."""
    kind = f"{MULTIPART}; boundary=b"
    file = part("file", b"\xff\x00", more=b'; filename="p.csv"')
    found = dict(await fields_of(part("kind", b".csv") + file + b"--b--\r\n", kind))
    sent = found.pop("file")
    assert found == {"kind": ".csv"}
    assert isinstance(sent, UploadFile)
    assert await sent.read() == b"\xff\x00"
    for more in (b"", b"\r\ncontent-type: text/plain; charset=nope"):
        with pytest.raises(Unprocessable):
            await fields_of(part("a", b"\xff", more=more) + b"--b--\r\n", kind)
