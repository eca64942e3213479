"""One case from its number: the same seed and number give the same bytes."""

import random
from dataclasses import dataclass
from typing import Any

from fuzz.corpus import AT_LENGTH, CANARY, CHATS, COMPLETIONS, MODEL
from fuzz.json_text import encode
from fuzz.mutations import CONTENT_TYPES, ODD_VALUES, mutated_body
from fuzz.schema_values import SchemaValues

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
BODY_BYTES_MAX = 8 * 1024 * 1024


@dataclass(frozen=True)
class Keys:
    """Bearers, and ids of things that the admin cases may spoil."""

    tenants: tuple[str, ...]
    """Keys without limits."""
    limited: str
    refused: tuple[str, ...]
    """Revoked, of other models or of another address."""
    admin: str
    viewer: str
    ids: dict[str, tuple[str, ...]]
    """Values of path parameters, by their name."""


@dataclass(frozen=True)
class Case:
    """What is sent, and how the client behaves."""

    kind: str
    method: str
    target: str
    request: bytes
    operation: str | None = None
    """The path of the document that it is meant for."""
    well_framed: bool = True
    leave_after: int | None = None
    """Bytes of the answer after which the client goes; None where it stays."""


class Cases:
    """All cases of one seed, on one document."""

    def __init__(self, seed: int, document: Any, keys: Keys) -> None:
        self._seed = seed
        self._document = document
        self._keys = keys
        self._values = SchemaValues(document)
        self._admin = [
            (method.upper(), path, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
            if path.startswith(("/admin/", "/billing/"))
        ]

    def case(self, number: int) -> Case:
        """That case."""
        rng = random.Random(f"{self._seed}/{number}")  # noqa: S311 - repeatable
        makers = (self._mutated, self._from_schema, self._administrative, self._other)
        return rng.choices(makers, weights=(56, 24, 14, 6))[0](rng)

    def _mutated(self, rng: random.Random) -> Case:
        path, corpus = rng.choice(((CHAT, CHATS), (CHAT, CHATS), (COMPLETION, COMPLETIONS)))
        body = mutated_body(rng.choice(corpus), rng)
        if rng.random() < 0.001:
            body = body[:-1] + b',"user":"' + b"x" * BODY_BYTES_MAX + b'"}'
        return self._tenants("mutated", path, body, rng)

    def _from_schema(self, rng: random.Random) -> Case:
        path = rng.choice((CHAT, CHAT, COMPLETION))
        schema = self._document["paths"][path]["post"]["requestBody"]["content"]
        body = self._values.draw(schema["application/json"]["schema"], rng)
        if rng.random() < 0.9:
            body["model"] = MODEL
        if not body.get("stream") and rng.random() < 0.9:
            body.pop("stream_options", None)
        if rng.random() < 0.9:  # what no schema says: fields that need or exclude each other
            body.pop("best_of", None)
            body.pop("top_logprobs", None)
        return self._tenants("schema", path, encode(body), rng)

    def _tenants(self, kind: str, path: str, body: bytes, rng: random.Random) -> Case:
        token = rng.choices(
            (rng.choice(self._keys.tenants), self._keys.limited, rng.choice(self._keys.refused)),
            weights=(94, 3, 3),
        )[0]
        headers = [(b"authorization", b"Bearer " + token.encode()), *_headers(rng)]
        leave = rng.choice((0, 1, 200, 1500, 50_000)) if rng.random() < 0.04 else None
        if leave is not None:  # long enough to be left in the middle
            body = body.replace(CANARY.encode(), f"{CANARY} {AT_LENGTH}".encode())
            body = body.replace(b'"max_tokens":8', b'"max_tokens":300')
        if rng.random() < 0.05:
            return _misframed(path, headers, body, rng)
        return _case(kind, "POST", path, headers, body, operation=path, leave_after=leave, rng=rng)

    def _administrative(self, rng: random.Random) -> Case:
        method, path, operation = rng.choice(self._admin)
        if path.endswith("/users") and method == "POST" and rng.random() < 0.7:
            method, operation = "GET", self._document["paths"][path]["get"]  # a hash is dear
        target = path
        for parameter in operation["parameters"]:
            if parameter["in"] == "path":
                target = target.replace("{" + parameter["name"] + "}", self._id(parameter, rng))
        query = [
            f"{parameter['name']}={self._query(parameter, rng)}"
            for parameter in operation["parameters"]
            if parameter["in"] == "query" and rng.random() < 0.4
        ]
        body = b""
        if "requestBody" in operation:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            drawn = self._values.draw(schema, rng)
            body = mutated_body(drawn, rng) if rng.random() < 0.4 else encode(drawn)
        token = self._keys.admin if rng.random() < 0.92 else rng.choice((self._keys.viewer, "no"))
        headers = [(b"authorization", b"Bearer " + token.encode())]
        whole = target + ("?" + "&".join(query) if query else "")
        known = None if "%2F" in target or "/.." in target else path  # else it is another path
        return _case("admin", method, whole, headers, body, operation=known, rng=rng)

    def _id(self, parameter: Any, rng: random.Random) -> str:
        known = self._keys.ids.get(parameter["name"], ())
        odd = ("nope", "%00", "%2F", "a%20b", "%F0%9F%99%82", "%ff", "x" * 300, "..", "'")
        return rng.choice(known) if known and rng.random() < 0.7 else rng.choice(odd)

    def _query(self, parameter: Any, rng: random.Random) -> str:
        if rng.random() < 0.5 and parameter["schema"].get("type") == "integer":
            return str(self._values.draw(parameter["schema"], rng))
        return rng.choice(
            ("", "1", "0", "-1", "9" * 30, "%00", "abc", "bmF0", "%F0%9F%99%82", "1.5")
        )

    def _other(self, rng: random.Random) -> Case:
        method = rng.choice(
            ("GET", "GET", "GET", "POST", "DELETE", "HEAD", "PUT", "OPTIONS", "PATCH")
        )
        path = rng.choice(
            (
                "/v1/models", "/v1/limits", "/v1/models", "/v1/limits", CHAT, COMPLETION,
                "/healthz", "/readyz", "/metrics", "/openapi.json", "/", "/v1",
                "/v1/nothing", "/v1/models/x", "/admin/v1", "/schema", "//v1/models",
                "/v1/%2e%2e/admin", "/v1/chat/completions/",
            )
        )  # fmt: skip
        token = rng.choice((*self._keys.tenants, *self._keys.refused, self._keys.admin, "x"))
        headers = [(b"authorization", b"Bearer " + token.encode()), *_headers(rng)]
        body = b"" if method in ("GET", "HEAD") else encode(rng.choice(ODD_VALUES[:20]))
        operation = path if path in self._document["paths"] else None
        return _case("other", method, path, headers, body, operation=operation, rng=rng)


def _headers(rng: random.Random) -> list[tuple[bytes, bytes]]:
    headers = [
        (b"content-type", rng.choice(CONTENT_TYPES) if rng.random() < 0.1 else CONTENT_TYPES[0])
    ]
    odd: tuple[tuple[bytes, bytes], ...] = (
        (b"x-weir-class", b"batch"), (b"x-weir-class", b"interactive"), (b"x-weir-class", b"x"),
        (b"x-weir-max-wait-ms", b"-1"), (b"x-weir-max-wait-ms", b"abc"),
        (b"expect", b"100-continue"),
        (b"x-weir-data-policy", b"self_hosted_only"), (b"x-weir-data-policy", b"no"),
        (b"authorization", b"Basic eDp5"), (b"authorization", b"\xff"),
        (b"x-request-id", b"x\xff"),
        (b"x-forwarded-for", b"10.0.0.1"), (b"content-encoding", b"gzip"), (b"upgrade", b"h2c"),
        (b"accept", b"text/html"), (b"x-long", b"x" * 20_000), (b"idempotency-key", b"a"),
    )  # fmt: skip
    if rng.random() < 0.12:
        headers.append(rng.choice(odd))
    return headers


def _case(
    kind: str,
    method: str,
    target: str,
    headers: list[tuple[bytes, bytes]],
    body: bytes,
    *,
    operation: str | None,
    rng: random.Random,
    leave_after: int | None = None,
) -> Case:
    framing = [(b"content-length", b"%d" % len(body))]
    if body and rng.random() < 0.1:
        framing, body = [(b"transfer-encoding", b"chunked")], _chunks(body, rng)
    request = _head(method, target, [*headers, *framing]) + body
    return Case(kind, method, target, request, operation, leave_after=leave_after)


def _head(method: str, target: str, headers: list[tuple[bytes, bytes]]) -> bytes:
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    return f"{method} {target} HTTP/1.1\r\nhost: weir\r\n".encode() + lines + b"\r\n"


def _chunks(body: bytes, rng: random.Random) -> bytes:
    size = rng.choice((1, 7, 100, 10_000)) if len(body) < 5_000 else 50_000
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def _misframed(
    path: str, headers: list[tuple[bytes, bytes]], body: bytes, rng: random.Random
) -> Case:
    """A body whose length is told wrongly. Where less comes than was told the client goes."""
    size = len(body)
    length, chunked = b"content-length", (b"transfer-encoding", b"chunked")
    told: list[tuple[bytes, bytes]]
    leaves = False
    match rng.randrange(8):
        case 0:
            told, leaves = [(length, b"%d" % (size + 50))], True
        case 1:
            told = [(length, b"%d" % max(0, size - 5))]
        case 2:
            told = [(length, b"%d" % size), chunked]
        case 3:
            told, body, leaves = [chunked], rng.choice((b"zz\r\n", b"5\r\nab", b"-1\r\n")), True
        case 4:
            told = [(length, b"%d" % size), (length, b"%d" % (size + 1))]
        case 5:
            told = [(length, rng.choice((b"abc", b"-1", b"+5", b"9" * 30, b"1 2", b"0x5")))]
            leaves = True
        case 6:
            told = []
        case _:
            told = [(b"transfer-encoding", rng.choice((b"gzip", b"chunked, gzip", b"xchunked")))]
            leaves = True
    request = _head("POST", path, [*headers, *told, (b"connection", b"close")]) + body
    return Case(
        "misframed", "POST", path, request, path, well_framed=False,
        leave_after=300 if leaves else None,
    )  # fmt: skip
