"""SGLang's own `/generate` (`captures/08…`, `09m`, `09o`, `09p`)."""

from uuid import uuid4

from conformance.engine import GENERATE, Engine, Json, generate_body
from conformance.shapes import assert_shape

META_RUNNING: Json = {
    "id": "330be26697ce40ccb379ab146a8ab0ac",
    "finish_reason": None,
    "prompt_tokens": 12,
    "weight_version": "default",
    "num_retractions": 0,
    "storage_prefetch_wait": 0.0,
    "storage_staging_wait": 0.0,
    "forward_entry_time": 1795963901.0699391,
    "prefill_finished_time": 1795963901.0743916,
    "queue_time": 0.00028721899980155285,
    "reasoning_tokens": 0,
    "completion_tokens": 1,
    "cached_tokens": 11,
    "cached_tokens_details": {"device": 11, "host": 0},
    "dp_rank": None,
}
META_ENDED = {
    **META_RUNNING,
    "finish_reason": {"type": "length", "length": 3},
    "weight_versions": [{"version": "default", "start": 0, "end": 3}],
    "e2e_latency": 0.008388207999814767,
    "request_received_ts": 1795963901.069084,
    "first_token_latency": 0.006191630000103032,
    "api_server_dispatch_finish_ts": 1795963901.0694022,
    "request_finished_ts": 1795963901.0774722,
    "decode_throughput": 910.5071617135686,
    "response_sent_to_client_ts": 1795963901.075369,
}
ABORTED = {"type": "abort", "message": "Aborted", "status_code": None, "err_type": None}
TOO_LONG = "The input ({} tokens) is longer than the model's context length ({} tokens)."


def assert_meta(meta: Json, captured: Json) -> None:
    """Fail where the names or kinds differ; their order is no matter of SGLang's either."""
    cold = {**captured, "cached_tokens_details": None}
    expected = captured if meta["cached_tokens"] else cold
    assert_shape(dict(sorted(meta.items())), dict(sorted(expected.items())))


def check_whole(engine: Engine) -> None:
    """08a: text, ids, and what is said of the request; cold, the cache has no details."""
    engine.come_to_rest()
    rid = f"my-rid-{uuid4().hex}"
    answer = engine.generate(rid=rid).json
    assert list(answer) == ["text", "output_ids", "meta_info"]
    assert len(answer["output_ids"]) == 4
    meta = answer["meta_info"]
    assert_meta(meta, META_ENDED)
    assert meta["id"] == rid
    assert meta["finish_reason"] == {"type": "length", "length": 4}
    assert (meta["completion_tokens"], meta["cached_tokens"]) == (4, 0)
    assert meta["weight_versions"] == [{"version": "default", "start": 0, "end": 4}]
    assert 0 < meta["first_token_latency"] <= meta["e2e_latency"]
    assert 0 <= meta["queue_time"] <= meta["e2e_latency"]
    assert meta["decode_throughput"] > 0


def check_one_token(engine: Engine) -> None:
    """One token decodes at no speed at all: that name is absent."""
    meta = engine.generate(tokens=1).json["meta_info"]
    assert meta["completion_tokens"] == 1
    assert "decode_throughput" not in meta


def check_nothing_asked(engine: Engine) -> None:
    """As a chat's: 200, and empty."""
    answer = engine.generate(tokens=0).json
    assert (answer["text"], answer["output_ids"]) == ("", [])
    assert answer["meta_info"]["finish_reason"] == {"type": "length", "length": 0}


def check_ids_in_and_out(engine: Engine) -> None:
    """08a: given ids are the prompt; the answer's ids are what its text is made of."""
    ids = engine.tokens_of(prompt=f"A delta ({uuid4().hex}) spreads")
    first, again = (engine.generate(input_ids=ids).json for _ in range(2))
    assert first["meta_info"]["prompt_tokens"] == len(ids)
    assert again["text"] == first["text"]
    assert again["output_ids"] == first["output_ids"]
    assert again["meta_info"]["cached_tokens"] == len(ids) - 1
    assert again["meta_info"]["cached_tokens_details"] == {"device": len(ids) - 1, "host": 0}


def check_stream_is_cumulative(engine: Engine) -> None:
    """08c: each event holds all text and ids so far, the last one what a whole answer holds."""
    text = f"A fjord ({uuid4().hex}) cuts"
    whole = engine.generate(text, tokens=5).json
    *running, last = engine.generate(text, tokens=5, stream=True).events
    assert running
    before: Json = {"text": "", "output_ids": []}
    for event in running:
        assert list(event) == ["text", "output_ids", "meta_info"]
        meta = dict(event["meta_info"])
        # It is in the first event, and no longer in the others.
        meta.pop("response_sent_to_client_ts", None)
        assert_meta(meta, META_RUNNING)
        assert event["output_ids"][: len(before["output_ids"])] == before["output_ids"]
        assert event["text"].startswith(before["text"])
        assert meta["completion_tokens"] == len(event["output_ids"])
        assert len(event["output_ids"]) > len(before["output_ids"])
        before = event
    assert_meta(last["meta_info"], META_ENDED)
    assert (last["text"], last["output_ids"]) == (whole["text"], whole["output_ids"])


def check_batch(engine: Engine) -> None:
    """08d: a list of texts is a list of answers, each with an id of its own."""
    texts = [f"A creek ({uuid4().hex})", f"A brook ({uuid4().hex}) and a pond"]
    body = generate_body(texts, tokens=2)
    answers = engine.post(GENERATE, body).json
    assert [len(answer["output_ids"]) for answer in answers] == [2, 2]
    assert len({answer["meta_info"]["id"] for answer in answers}) == 2
    for text, answer in zip(texts, answers, strict=True):
        assert_meta(answer["meta_info"], META_ENDED)
        assert answer["meta_info"]["prompt_tokens"] == len(engine.tokens_of(prompt=text))


def check_batch_stream(engine: Engine) -> None:
    """A batch's events say by `index` whose they are."""
    texts = [f"A bay ({uuid4().hex})", f"A gulf ({uuid4().hex})"]
    events = engine.post(GENERATE, generate_body(texts, tokens=2, stream=True)).events
    assert {event["index"] for event in events} == {0, 1}
    ended = [event for event in events if event["meta_info"]["finish_reason"]]
    assert sorted(event["index"] for event in ended) == [0, 1]
    assert [len(event["output_ids"]) for event in ended] == [2, 2]


def check_stop_string(engine: Engine) -> None:
    """What matched is named in the finish reason."""
    text = f"A canal ({uuid4().hex}) joins"
    whole = engine.generate(text, tokens=6).json["text"]
    stop = whole[len(whole) // 2 :][:3]
    sampling = {"temperature": 0, "max_new_tokens": 6, "ignore_eos": True, "stop": stop}
    answer = engine.generate(text, sampling_params=sampling).json
    assert answer["meta_info"]["finish_reason"] == {"type": "stop", "matched": stop}
    assert answer["text"] == whole[: whole.index(stop)]


def check_unknown_sampling_parameter(engine: Engine) -> None:
    """09m: named, with all that there are."""
    body = {"text": "hi", "sampling_params": {"max_new_tokens": 3, "frob": 1}}
    answer = engine.post(GENERATE, body)
    assert answer.status == 400
    assert list(answer.json) == ["error"]
    message = answer.json["error"]
    assert message.startswith("unknown field `frob`, expected one of `max_new_tokens`, `stop`, ")
    assert message.endswith("`watermark`, `choice`")


def check_too_long(engine: Engine) -> None:
    """09o: a 400 of a form of its own."""
    answer = engine.generate("alpha " * engine.context_tokens * 2)
    assert answer.status == 400
    count = int(answer.text.partition("(")[2].partition(" ")[0])
    assert count > engine.context_tokens
    assert answer.json == {"error": {"message": TOO_LONG.format(count, engine.context_tokens)}}


def check_too_long_stream(engine: Engine) -> None:
    """09p: 200, and the error in an event."""
    answer = engine.generate("alpha " * engine.context_tokens * 2, stream=True)
    (event,) = answer.events
    count = int(answer.text.partition("(")[2].partition(" ")[0])
    message = TOO_LONG.format(count, engine.context_tokens)
    error = {"message": message, "type": "invalid_request_error", "code": 400, "retryable": False}
    assert event == {"error": error}


def check_too_much_asked(engine: Engine) -> None:
    """Prompt and maximum together over the context: the same words as for a chat."""
    text = "A cape"
    prompt, maximum = len(engine.tokens_of(prompt=text)), engine.context_tokens - 1
    answer = engine.generate(text, tokens=maximum)
    assert answer.status == 400
    assert answer.json["error"]["message"].startswith(
        f"Requested token count exceeds the model's maximum context length of "
        f"{engine.context_tokens} tokens. You requested a total of {prompt + maximum} tokens: "
        f"{prompt} tokens from the input messages and {maximum} tokens for the completion."
    )
