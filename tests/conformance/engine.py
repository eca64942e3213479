"""An engine that is asked over SGLang's HTTP, whatever stands behind it."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

Json = dict[str, Any]
ANSWER_WITHIN_S = 100.0
"""A decoding step takes milliseconds on a simulated worker and up to a second on a busy CPU."""
CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"
GENERATE = "/generate"


@dataclass(frozen=True)
class Answer:
    """One whole HTTP answer, a stream read to its end among them."""

    status: int
    headers: dict[str, str]
    raw: bytes
    took_s: float

    @property
    def text(self) -> str:
        """The body as text."""
        return self.raw.decode()

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.raw)

    @property
    def message(self) -> str:
        """What an OpenAI-shaped error says."""
        message: str = self.json["message"]
        return message

    @property
    def payloads(self) -> list[str]:
        """What each event of a stream carries, `[DONE]` included."""
        assert self.status == 200, self.text
        assert self.headers["content-type"] == "text/event-stream; charset=utf-8"
        frames = self.text.split("\n\n")
        assert frames[-1] == "", "the stream broke within an event"
        assert all(frame.startswith("data: ") for frame in frames[:-1]), self.text
        return [frame.removeprefix("data: ") for frame in frames[:-1]]

    @property
    def events(self) -> list[Json]:
        """The events of a stream that ended as it should: with `[DONE]`, once and last."""
        *events, last = self.payloads
        assert last == "[DONE]", self.text[-300:]
        return [json.loads(event) for event in events]


class OpenStream:
    """A stream that is being read."""

    def __init__(self, response: HTTPResponse) -> None:
        self.response = response
        self.read = b""

    def event(self) -> Json:
        """The next event."""
        while True:
            line = self.response.readline()
            assert line, "the stream ended"
            self.read += line
            if line.startswith(b"data: "):
                parsed: Json = json.loads(line[6:])
                return parsed

    def rest(self) -> Answer:
        """Read to the end; the answer holds what was read before too."""
        raw = self.read + self.response.read()
        headers = {name.lower(): value for name, value in self.response.getheaders()}
        return Answer(self.response.status, headers, raw, 0.0)


@dataclass(frozen=True)
class Engine:
    """One engine, and what it was started with. Every check leaves it idle."""

    url: str
    model: str
    context_tokens: int
    pool_tokens: int
    running_max: int
    queued_max: int | None
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(16))

    def ask(self, method: str, path: str, body: Json | bytes | None = None) -> Answer:
        """One answer, read to its end. A body of bytes is sent as it is."""
        with self.opened(method, path, body) as (response, began):
            raw = response.read()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, headers, raw, time.monotonic() - began)

    def get(self, path: str) -> Answer:
        """GET it."""
        return self.ask("GET", path)

    def post(self, path: str, body: Json | bytes) -> Answer:
        """POST it."""
        return self.ask("POST", path, body)

    def later(self, path: str, body: Json) -> "Future[Answer]":
        """The same, on a thread."""
        return self._pool.submit(self.post, path, body)

    def chat(self, text: str = "", **fields: Any) -> Answer:
        """A chat completion."""
        return self.post(CHAT, chat_body(text, **fields))

    def generate(self, text: str = "", **fields: Any) -> Answer:
        """SGLang's own completion."""
        return self.post(GENERATE, generate_body(text, **fields))

    @contextmanager
    def opened(
        self, method: str, path: str, body: Json | bytes | None = None
    ) -> Iterator[tuple[HTTPResponse, float]]:
        """A response whose headers have come; leaving the block closes its connection."""
        parts = urlsplit(self.url)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=ANSWER_WITHIN_S)
        sent = json.dumps(body) if isinstance(body, dict) else body
        headers = {"connection": "close"} | ({"content-type": "application/json"} if sent else {})
        began = time.monotonic()
        try:
            connection.request(method, path, sent, headers)
            # Its connection is closed with it, and no sooner.
            with connection.getresponse() as response:
                yield response, began
        finally:
            connection.close()

    @contextmanager
    def streaming(self, path: str, body: Json) -> Iterator[OpenStream]:
        """A stream that has begun; leaving the block leaves it."""
        with self.opened("POST", path, {**body, "stream": True}) as (response, _):
            assert response.status == 200
            yield OpenStream(response)

    def abort(self, **body: object) -> Answer:
        """Ask it to abort."""
        return self.post("/abort_request", body)

    def tokens_of(self, **body: object) -> list[int]:
        """The tokens of a prompt, or of messages as a chat sends them."""
        tokens: list[int] = self.post("/v1/tokenize", {"model": self.model, **body}).json["tokens"]
        return tokens

    def load(self) -> Json:
        """The one rank's load, a snapshot that lags."""
        (rank,) = self.get("/v1/loads").json["loads"]
        assert isinstance(rank, dict)
        return rank

    def until_load(self, **wanted: int) -> None:
        """Wait until the snapshot says so."""
        soon(lambda: wanted.items() <= self.load().items(), f"a load of {wanted}")

    @property
    def idle(self) -> bool:
        """Whether its scheduler holds nothing: only then does it flush its cache."""
        return self.get("/flush_cache").status == 200

    def come_to_rest(self) -> None:
        """End all that runs or waits; an empty cache is left."""
        self.abort(abort_all=True)
        soon(lambda: self.idle, "an idle engine")


def chat_body(text: str = "", **fields: Any) -> Json:
    """A chat at temperature 0 for 4 tokens, whose end is its maximum."""
    messages = [{"role": "user", "content": text or f"Name a river ({uuid4().hex})."}]
    fixed = {"temperature": 0, "max_tokens": 4, "ignore_eos": True}
    return {"model": "asked", "messages": messages, **fixed, **fields}


def text_body(text: str = "", **fields: Any) -> Json:
    """A text completion of the same kind."""
    prompt = text or f"A river ({uuid4().hex}) flows"
    fixed = {"temperature": 0, "max_tokens": 4, "ignore_eos": True}
    return {"model": "asked", "prompt": prompt, **fixed, **fields}


def generate_body(text: str | list[str] = "", *, tokens: int = 4, **fields: Any) -> Json:
    """A /generate request of the same kind."""
    sampling = {"temperature": 0, "max_new_tokens": tokens, "ignore_eos": True}
    asked: Json = {"sampling_params": sampling, **fields}
    if "input_ids" not in fields:
        asked["text"] = text or f"A river ({uuid4().hex}) flows"
    return asked


def soon(holds: Callable[[], object], what: str, *, within_s: float = 30.0) -> float:
    """Return once `holds()`, and how long that took; fail where that is longer."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < within_s, f"{what} did not come within {within_s} s"
        time.sleep(0.01)
    return time.monotonic() - began
