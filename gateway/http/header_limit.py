"""A bound on request headers: uvicorn's own parser has none.

Headers over the bound are read and dropped, and the request is answered 413 in OpenAI's shape; a
sender that goes on regardless is cut off. What is not HTTP at all is a 400 in that shape too.
"""

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gateway.errors import InvalidRequest, RequestTooLarge
from gateway.wire.error_body import error_json

_CUT_OFF_FACTOR = 64


async def _answer_too_large(scope: Any, receive: Any, send: Any) -> None:
    body = error_json(RequestTooLarge("the request's headers are too large"))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with a bound on the size of a request's line and headers."""

    header_bytes_max = 64 * 1024
    head_bytes = 0
    fed_bytes = 0
    in_head = True

    def data_received(self, data: bytes) -> None:
        if self.in_head:
            self.fed_bytes += len(data)
            if self.fed_bytes > self.header_bytes_max * _CUT_OFF_FACTOR:
                self.transport.close()
                return
        super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        body = error_json(InvalidRequest(msg))
        self.transport.write(
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
            b"connection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
        )
        self.transport.close()

    def on_message_begin(self) -> None:
        self.head_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self.head_bytes += len(url)
        if self.head_bytes <= self.header_bytes_max:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.head_bytes += len(name) + len(value) + 4
        if self.head_bytes <= self.header_bytes_max:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self.in_head = False
        app = self.app
        if self.head_bytes > self.header_bytes_max:
            self.url = b"/"
            self.app = _answer_too_large
        try:
            super().on_headers_complete()
        finally:
            self.app = app

    def on_message_complete(self) -> None:
        self.in_head = True
        self.fed_bytes = 0
        super().on_message_complete()


def limited_protocol(header_bytes_max: int) -> type[LimitedProtocol]:
    """The protocol with this bound."""
    return type("LimitedProtocol", (LimitedProtocol,), {"header_bytes_max": header_bytes_max})
