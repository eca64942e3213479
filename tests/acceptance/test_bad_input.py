"""Every bad input gets the contract's error, reserves nothing and is in no log (issue line 6)."""

import http.client
import json
import urllib.parse

import pytest
from weir_dev import WeirDev

SECRET = "the-duck-flies-at-midnight"


def chat_json(**fields: object) -> bytes:
    message = {"role": "user", "content": SECRET}
    return json.dumps({"model": "smollm2-135m", "messages": [message], **fields}).encode()


BAD_BODIES: dict[str, tuple[bytes, int, str]] = {
    "malformed": (b'{"model": "smollm2-135m", ' + SECRET.encode(), 400, "invalid_value"),
    "empty": (b"", 400, "invalid_value"),
    "not an object": (json.dumps([SECRET]).encode(), 400, "invalid_value"),
    "wrong type": (chat_json(max_tokens=SECRET), 400, "invalid_value"),
    "model is a number": (chat_json(model=5), 400, "invalid_value"),
    "20 MB": (chat_json(user="x" * 20_000_000), 413, "request_too_large"),
    "20,000 brackets": (
        b'{"model":"smollm2-135m","messages":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        400,
        "invalid_value",
    ),
    "brackets in an open field": (
        chat_json()[:-1] + b',"tools":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        400,
        "invalid_value",
    ),
    "unknown model": (chat_json(model="nope"), 404, "model_not_found"),
    "max_tokens -1": (chat_json(max_tokens=-1), 400, "invalid_value"),
    "max_tokens 0": (chat_json(max_tokens=0), 400, "invalid_value"),
    "max_completion_tokens 0": (chat_json(max_completion_tokens=0), 400, "invalid_value"),
    "invalid UTF-8": (b'{"model":"smollm2-135m","messages":"\xff\xfe"}', 400, "invalid_value"),
    "prompt beyond the context": (
        chat_json(messages=[{"role": "user", "content": "river " * 140_000}]),
        400,
        "context_length_exceeded",
    ),
    "maximum beyond the context": (chat_json(max_tokens=140_000), 400, "context_length_exceeded"),
    "unknown field": (chat_json(frobnicate=SECRET), 400, "unsupported_parameter"),
    "privileged field": (chat_json(rid=SECRET), 400, "unsupported_parameter"),
    "no messages": (chat_json(messages=[]), 400, "invalid_value"),
    "temperature": (chat_json(temperature=99), 400, "invalid_value"),
    "n": (chat_json(n=0), 400, "invalid_value"),
    "stream_options alone": (chat_json(stream_options={}), 400, "invalid_value"),
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_bad_body_is_refused_in_openais_shape(simulated: WeirDev, name: str) -> None:
    """S03 and its kind: the status and code of the contract, with a message."""
    simulated.set_limits(max_sequences=1, tpm=1_000_000)
    body, status, code = BAD_BODIES[name]
    reply = simulated.post(body)
    assert reply.status == status, reply.raw[:200]
    assert reply.error["code"] == code
    assert reply.error["message"]
    assert set(reply.error) == {"message", "type", "param", "code"}
    shown = simulated.limits()["tenant"]
    assert (shown["sequences_running"], shown["tokens_last_minute"]) == (0, 0)


def test_headers_are_bounded(simulated: WeirDev) -> None:
    """A huge header is a 413 in OpenAI's shape, and the next request is served."""
    for size in (100_000, 1_000_000):
        reply = simulated.post(chat_json(), headers={"x-padding": SECRET + "x" * size})
        assert reply.status == 413
        assert reply.error["code"] == "request_too_large"
    assert simulated.chat().status == 200


@pytest.mark.parametrize("key", ["sk-weir-wrong", "", "Bearer", "sk-weir-\xe9"])
def test_a_wrong_key_is_a_401(simulated: WeirDev, key: str) -> None:
    """It says so, and what was sent as a key is not shown again."""
    reply = simulated.post(chat_json(), token=key or " ")
    assert reply.status == 401
    assert reply.error["code"] == "invalid_api_key"
    assert "sk-weir-wrong" not in reply.error["message"]


def test_what_is_not_http_is_a_400_in_the_same_shape(simulated: WeirDev) -> None:
    """Also where no request could be read at all."""
    reply = simulated.post(chat_json(), token="\x7f")
    assert reply.status == 400
    assert reply.error["type"] == "invalid_request_error"


def test_paths_and_methods_that_do_not_exist(simulated: WeirDev) -> None:
    """M13: OpenAI's shape below /v1, a problem elsewhere; nothing is passed on to an engine that
    would serve it unmetered."""
    url = simulated.gateway()
    before = simulated.worker("/weir/ledger")["next"]
    for path in ("/v1/embeddings", "/v1/responses", "/v1/messages", "/v1/batches", "/generate"):
        assert simulated.request("POST", url + path, {}).status == 404
    assert simulated.worker("/weir/ledger")["next"] == before
    assert simulated.request("GET", url + "/v1/nothing").error["code"] == "not_found"
    assert simulated.request("GET", url + "/v1/chat/completions").status == 405
    elsewhere = simulated.request("GET", url + "/nothing")
    assert elsewhere.status == 404
    assert elsewhere.headers["content-type"] == "application/problem+json"


def test_nothing_that_a_tenant_wrote_is_in_a_log(simulated: WeirDev) -> None:
    """INV-12: neither prompts, nor keys, nor what was malformed."""
    simulated.chat(SECRET)
    for body, _, _ in BAD_BODIES.values():
        simulated.post(body)
    written = b"".join(
        path.read_bytes()
        for folder in ("log", ".")
        for path in (simulated.data_dir / folder).glob("*.log")
    )
    assert len(written) > 100
    assert SECRET.encode() not in written
    shown_at_the_start = simulated.key().encode()
    assert written.count(shown_at_the_start) == (
        (simulated.data_dir / "weir-dev.log").read_bytes().count(shown_at_the_start)
    )


def test_every_answer_below_v1_has_a_request_id(simulated: WeirDev) -> None:
    """Also lists, refusals and what no route is found for."""
    url = simulated.gateway()
    for method, path in (
        ("GET", "/v1/models"),
        ("GET", "/v1/limits"),
        ("GET", "/v1/nothing"),
        ("DELETE", "/v1/models"),
        ("GET", "/v1/chat/completions"),
    ):
        for token in (simulated.key(), "sk-weir-wrong"):
            reply = simulated.request(method, url + path, token=token)
            assert len(reply.headers["x-request-id"]) == 36, (method, path)


def test_of_two_keys_neither_counts(simulated: WeirDev) -> None:
    """Which one was meant cannot be known, and a proxy in front may have checked the other."""
    parts = urllib.parse.urlsplit(simulated.gateway())
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    connection.putrequest("GET", "/v1/models")
    connection.putheader("authorization", "Bearer sk-weir-wrong")
    connection.putheader("authorization", f"Bearer {simulated.key()}")
    connection.endheaders()
    assert connection.getresponse().status == 401
    connection.close()
