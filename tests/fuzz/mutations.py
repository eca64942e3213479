"""What goes wrong with a real body: values, keys, nesting and the bytes themselves."""

import random
from collections.abc import Callable
from typing import Any

from fuzz.corpus import CANARY, MODEL, NESTED, PRIVILEGED
from fuzz.json_text import Literal, Pairs, encode

Json = Any
ODD_VALUES: tuple[Json, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**40, 0.5, -0.0, 1e308, "", "x",
    [], {}, [[]], {"a": {}}, "\ud800", "\u0000", "﷽" * 20, "🙂" * 50, "\u202e" + CANARY, [None],
    ["a", 1],
    Literal(b"NaN"), Literal(b"Infinity"), Literal(b"-Infinity"), Literal(b"1e999"),
    Literal(b"-1e999"), Literal(b"01"), Literal(b"1."), Literal(b"0x10"), Literal(b"9" * 5000),
    Literal(b'"\\ud800"'), Literal(b'"\\udc00\\ud800"'), Literal(b'"\\u0000"'),
    Literal(b'"\xff\xfe"'), Literal(b"'single'"), Literal(b'"tab\there"'), Literal(b"tru"),
    "https://10.0.0.1/x.png", "file:///etc/passwd", "DATA:text/plain,x", "data:",
)  # fmt: skip
UNKNOWN_KEYS = ("frobnicate", "Rid", "RID", "messages ", "__proto__", "max_new_tokens", "ﬁeld", "")
CONTENT_TYPES = (
    b"application/json", b"text/plain", b"application/json; charset=utf-16",
    b"multipart/form-data; boundary=x", b"", b"application/x-www-form-urlencoded", b"\xff",
)  # fmt: skip

Path = tuple[Any, ...]
Mutation = Callable[[Json, random.Random], Json]


def mutated_body(body: Json, rng: random.Random) -> bytes:
    """The text of a body after none to a few mutations, most of them of one value."""
    for _ in range(rng.choice((0, 0, 0, 1, 1, 1, 2, 3))):
        if isinstance(body, Pairs | Literal):  # text by now, no tree
            break
        body = rng.choice(MUTATIONS)(body, rng)
    text = encode(body)
    return damaged(text, rng) if rng.random() < 0.06 else text


def damaged(text: bytes, rng: random.Random) -> bytes:
    """Bytes cut off, flipped, put in or added."""
    at = rng.randrange(len(text) + 1)
    return rng.choice(
        (
            text[:at],
            text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :],
            text[:at] + rng.choice((b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\x00")) + text[at:],
            text + rng.choice((b"}", b"{}", b",", b"\x00", b" \n")),
            b"\xef\xbb\xbf" + text,
            text.decode("utf-8", "replace").encode("utf-16"),
            b"",
        )
    )


def _paths(value: Json, prefix: Path = ()) -> list[Path]:
    found = [prefix] if prefix else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += _paths(inner, (*prefix, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += _paths(inner, (*prefix, index))
    return found


def _replaced(value: Json, path: Path, new: Json) -> Json:
    if not path:
        return new
    first, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {**value, first: _replaced(value[first], rest, new)}
    return [
        _replaced(each, rest, new) if index == first else each for index, each in enumerate(value)
    ]


def _at(value: Json, path: Path) -> Json:
    for step in path:
        value = value[step]
    return value


def _somewhere(body: Json, rng: random.Random) -> Path:
    paths = _paths(body)
    return rng.choice(paths) if paths else ()


def _odd_value(body: Json, rng: random.Random) -> Json:
    return _replaced(body, _somewhere(body, rng), rng.choice(ODD_VALUES))


def _dropped(body: Json, rng: random.Random) -> Json:
    if not isinstance(body, dict) or not body:
        return body
    gone = rng.choice(list(body))
    return {key: value for key, value in body.items() if key != gone}


def _object_in(body: Json, rng: random.Random) -> Path:
    """An object within the body; the body itself as often as any other."""
    objects = [path for path in _paths(body) if isinstance(_at(body, path), dict)]
    return rng.choice(objects) if objects and rng.random() < 0.5 else ()


def _with_member(body: Json, rng: random.Random, key: str, value: Json) -> Json:
    path = _object_in(body, rng)
    target = _at(body, path)
    if not isinstance(target, dict):
        return body
    return _replaced(body, path, {**target, key: value})


def _privileged(body: Json, rng: random.Random) -> Json:
    key = rng.choice(list(PRIVILEGED))
    return _with_member(body, rng, key, PRIVILEGED[key])


def _privileged_in_an_open_field(body: Json, rng: random.Random) -> Json:
    if not isinstance(body, dict):
        return body
    key = rng.choice(list(PRIVILEGED))
    field = rng.choice(("stream_options", "chat_template_kwargs", "metadata", "response_format"))
    known = body.get(field)
    inner = {**(known if isinstance(known, dict) else {}), key: PRIVILEGED[key]}
    more = {"stream": True} if field == "stream_options" else {}
    return {**body, **more, field: inner}


def _privileged_within(body: Json, rng: random.Random) -> Json:
    """In one of the body's own objects, whatever it is."""
    objects = [path for path in _paths(body) if isinstance(_at(body, path), dict)]
    if not objects:
        return body
    path, name = rng.choice(objects), rng.choice(list(NESTED))
    return _replaced(body, path, {**_at(body, path), name: NESTED[name]})


def _unknown(body: Json, rng: random.Random) -> Json:
    return _with_member(body, rng, rng.choice(UNKNOWN_KEYS), rng.choice(ODD_VALUES))


def _twice(body: Json, rng: random.Random) -> Json:
    """One key twice, the second with another value: whoever reads must agree with the engine."""
    path = _object_in(body, rng)
    target = _at(body, path)
    if not isinstance(target, dict) or not target:
        return body
    key = rng.choice(list(target))
    other = rng.choice((target[key], *ODD_VALUES[:14]))
    members = [*target.items(), (key, other)]
    rng.shuffle(members)
    return _replaced(body, path, Pairs(members))


def _deep(body: Json, rng: random.Random) -> Json:
    depth = rng.choice((50, 500, 5000, 60_000))
    opened, closed = rng.choice(((b"[", b"]"), (b'{"a":', b"}")))
    text = opened * depth + (b"1" if opened != b"[" else b"") + closed * depth
    return _replaced(body, _somewhere(body, rng), Literal(text))


def _long(body: Json, rng: random.Random) -> Json:
    size = rng.choice((1_000, 20_000, 200_000))
    return _replaced(body, _somewhere(body, rng), (CANARY + " river ") * (size // 30))


def _remote_media(body: Json, rng: random.Random) -> Json:
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
        return body
    url = rng.choice(("http://169.254.169.254/", "file:///etc/passwd", "//h/x", " data:x"))
    part = rng.choice(
        (
            {"type": "image_url", "image_url": {"url": url}},
            {"type": "image_url", "image_url": url},
            {"type": "video_url", "video_url": {"url": url}},
            {"type": "audio_url", "audio_url": {"url": url, "x": "data:"}},
            Pairs([("type", "image_url"), ("image_url", {"url": "data:x"}), ("image_url", url)]),
        )
    )
    return {**body, "messages": [*body["messages"], {"role": "user", "content": [part]}]}


def _other_model(body: Json, rng: random.Random) -> Json:
    if not isinstance(body, dict):
        return body
    return {
        **body,
        "model": rng.choice(("nope", MODEL.upper(), MODEL + " ", "", "../m", "m" * 300)),
    }


def _streamed(body: Json, rng: random.Random) -> Json:
    if not isinstance(body, dict):
        return body
    return {**body, "stream": True, "stream_options": {"include_usage": rng.random() < 0.5}}


MUTATIONS: tuple[Mutation, ...] = (
    _odd_value, _odd_value, _odd_value, _dropped, _privileged, _privileged_in_an_open_field,
    _privileged_within, _unknown, _twice, _twice, _deep, _long, _remote_media, _other_model,
    _streamed, _streamed,
)  # fmt: skip
