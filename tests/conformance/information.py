"""What an engine says of itself (`captures/06…`, `07…`)."""

import re
from contextlib import ExitStack
from uuid import uuid4

from conformance.aborts import LONG, begun
from conformance.engine import CHAT, Engine, Json, chat_body
from conformance.shapes import ERROR, assert_error, assert_shape, shape

QUEUES = {"waiting": 0, "grammar": 0, "paused": 0, "retracted": 0, "prealloc_ready": 0}
RANK: Json = {
    "timestamp": 1795963901.2382195,
    "dp_rank": 0,
    "num_running_reqs": 0,
    "num_waiting_reqs": 0,
    "num_waiting_uncached_tokens": 0,
    "num_used_tokens": 0,
    "num_total_tokens": 0,
    "num_active_tokens": 0,
    "num_prealloc_ready_tokens": 0,
    "max_total_num_tokens": 8192,
    "max_running_requests": 16,
    "token_usage": 0.0,
    "gen_throughput": 0.0,
    "cache_hit_rate": 0.0,
    "utilization": 0.0,
    "total_prefill_uncached_tokens": 555,
    "total_prefill_busy_us": 144500,
    "queues": QUEUES,
}
"""`captures/07_v1_loads.txt`, less what tells of GPUs and disaggregation."""
ALL_LOADS = {"timestamp": "2026-11-29T14:51:41+00:00", "version": "0.5.23", "num_accelerators": 1}
SERVER: Json = {
    "model_path": "/models/tiny",
    "tokenizer_path": "/models/tiny",
    "served_model_name": "tiny",
    "context_length": 2048,
    "max_running_requests": 16,
    "max_total_num_tokens": 8192,
    "max_req_input_len": 2042,
    "page_size": 1,
    "enable_cache_report": True,
    "enable_priority_scheduling": True,
    "schedule_low_priority_values_first": False,
    "disable_priority_preemption": True,
    "priority_scheduling_preemption_threshold": 10,
    "schedule_policy": "fcfs",
    "schedule_conservativeness": 1.0,
    "chunked_prefill_size": 4096,
    "status": "ready",
    "version": "0.5.23",
}
STATE = {"last_gen_throughput": 1.5, "effective_max_running_requests_per_dp": 16}
MODEL: Json = {
    "model_path": "/models/tiny",
    "served_model_name": "tiny",
    "tokenizer_path": "/models/tiny",
    "is_generation": True,
    "weight_version": "default",
    "has_image_understanding": False,
    "has_audio_understanding": False,
}
GAUGES = (
    *("num_running_reqs", "num_queue_reqs", "token_usage", "num_used_tokens"),
    *("kv_available_tokens", "kv_evictable_tokens", "kv_used_tokens", "max_total_num_tokens"),
    *("cache_hit_rate", "gen_throughput"),
)
COUNTERS = (
    *("prompt_tokens_total", "generation_tokens_total", "cached_tokens_total"),
    *("num_requests_total", "num_aborted_requests_total", "http_responses_total"),
)
HISTOGRAMS = (
    *("time_to_first_token_seconds", "inter_token_latency_seconds"),
    *("e2e_request_latency_seconds", "queue_time_seconds"),
)
FLUSHED = (
    "Cache flushed.\nPlease check backend logs for more details. (When there are running or "
    "waiting requests, the operation will not be performed.)\n"
)
HI = [{"role": "user", "content": "hi"}]


def assert_holds(answer: Json, captured: Json) -> None:
    """Fail where a name is missing or its value is of another kind; more names may be there."""
    found = {name: shape(answer[name]) for name in captured if name in answer}
    assert found == {name: shape(value) for name, value in captured.items()}


def families(engine: Engine) -> dict[str, str]:
    """The families of /metrics, and of which type each is."""
    lines = re.findall(r"^# TYPE sglang:(\S+) (\S+)$", engine.get("/metrics").text, re.MULTILINE)
    return dict(lines)


def counted(engine: Engine, family: str) -> float:
    """The sum of a counter over its labels; 0 where it has not counted yet."""
    found = re.findall(
        rf"^sglang:{family}(?:{{.*}})? (\S+)$", engine.get("/metrics").text, re.MULTILINE
    )
    return sum(map(float, found))


def check_loads(engine: Engine) -> None:
    """07: names and kinds; an idle engine uses nothing, whatever its cache holds."""
    engine.chat()
    answer = engine.get("/v1/loads")
    assert answer.headers["content-type"] == "application/json"
    assert_holds(answer.json, ALL_LOADS)
    assert answer.json["version"] == "0.5.23"
    (rank,) = answer.json["loads"]
    assert_holds(rank, RANK)
    assert rank["max_total_num_tokens"] == engine.pool_tokens
    assert rank["max_running_requests"] == engine.running_max
    engine.until_load(num_running_reqs=0, num_used_tokens=0)


def check_loads_while_it_runs(engine: Engine) -> None:
    """07: who runs and what they hold is counted, some steps late."""
    with ExitStack() as stack:
        for _ in range(2):
            begun(engine, stack, uuid4().hex)
        engine.until_load(num_running_reqs=2, num_waiting_reqs=0)
        rank = engine.load()
        assert 0 < rank["num_used_tokens"] < engine.pool_tokens
        assert 0 < rank["token_usage"] < 1


def check_loads_lag(engine: Engine) -> None:
    """Facts 7: a snapshot of every 15 decode steps: what is asked between them is the same."""
    with ExitStack() as stack:
        stream = begun(engine, stack, uuid4().hex, max_tokens=LONG)
        seen = []
        for _ in range(20):
            stream.event()
            seen.append(engine.load()["num_used_tokens"])
        # It grows by a token a step, and is published a few times in these.
        assert len(set(seen)) <= 5


def check_loads_as_metrics(engine: Engine) -> None:
    """07: the same in Prometheus text, under names of its own, with the rank as a label."""
    answer = engine.get("/v1/loads?format=prometheus")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    for name, value in RANK.items():
        if name in ("dp_rank", "queues"):
            continue
        assert f"# TYPE sglang_{name} gauge\n" in answer.text
        number = r"\d+\.\d+(e[+-]\d+)?" if isinstance(value, float) else r"\d+"
        assert re.search(rf'^sglang_{name}{{dp_rank="0"}} {number}$', answer.text, re.MULTILINE)
    for name in QUEUES:
        assert f'sglang_queues_{name}{{dp_rank="0"}} 0\n' in answer.text


def check_server(engine: Engine) -> None:
    """07: what a gateway reads, under both paths."""
    for path in ("/server_info", "/get_server_info"):
        answer = engine.get(path).json
        assert_holds(answer, SERVER)
        assert answer["status"] == "ready"
        assert answer["version"] == "0.5.23"
        assert answer["served_model_name"] == engine.model
        assert answer["context_length"] == engine.context_tokens
        assert answer["max_total_num_tokens"] == engine.pool_tokens
        assert answer["max_req_input_len"] == min(engine.context_tokens, engine.pool_tokens) - 6
        assert answer["max_queued_requests"] == engine.queued_max
        assert_holds(answer["internal_states"][0], STATE)


def check_model(engine: Engine) -> None:
    """07: under both paths."""
    for path in ("/model_info", "/get_model_info"):
        answer = engine.get(path).json
        assert_holds(answer, MODEL)
        assert answer["served_model_name"] == engine.model


def check_models(engine: Engine) -> None:
    """07: one card, which says how long a context may be."""
    (card,) = engine.get("/v1/models").json["data"]
    assert list(card) == ["id", "object", "created", "owned_by", "root", "parent", "max_model_len"]
    assert (card["id"], card["object"], card["root"]) == (engine.model, "model", engine.model)
    assert card["parent"] is None
    assert card["max_model_len"] == engine.context_tokens


def check_tokenize(engine: Engine) -> None:
    """07: messages as a chat sends them, text as it is; the count is what is then charged."""
    answer = engine.post("/v1/tokenize", {"model": engine.model, "messages": HI}).json
    assert list(answer) == ["tokens", "count", "max_model_len"]
    assert answer["count"] == len(answer["tokens"])
    assert answer["max_model_len"] == engine.context_tokens
    assert all(isinstance(token, int) for token in answer["tokens"])
    usage = engine.post(CHAT, chat_body(messages=HI)).json["usage"]
    assert usage["prompt_tokens"] == answer["count"]
    text = f"An isle ({uuid4().hex})"
    meta = engine.generate(text).json["meta_info"]
    assert meta["prompt_tokens"] == len(engine.tokens_of(prompt=text))


def check_tokenize_forms(engine: Engine) -> None:
    """A list of texts is counted each; neither text nor messages, or none of them, is a 400."""
    one, two = "A lagoon", "An estuary and a lagoon"
    answer = engine.post("/v1/tokenize", {"prompt": [one, two]}).json
    alone = [engine.tokens_of(prompt=text) for text in (one, two)]
    assert answer["tokens"] == alone
    assert answer["count"] == [len(tokens) for tokens in alone]
    refused = engine.post("/v1/tokenize", {})
    assert refused.status == 400
    assert_shape(refused.json, ERROR)
    refused = engine.post("/v1/tokenize", {"messages": []})
    assert refused.status == 400
    assert_error(refused.json, "Messages cannot be empty.")


def check_flush(engine: Engine) -> None:
    """07: text by GET and POST; 400 while anything runs, and then nothing is lost."""
    for method in ("GET", "POST"):
        answer = engine.ask(method, "/flush_cache", b"{}" if method == "POST" else None)
        assert (answer.status, answer.text) == (200, FLUSHED)
        assert "content-type" not in answer.headers
    text = f"A dune ({uuid4().hex})"
    prompt = engine.chat(text).json["usage"]["prompt_tokens"]
    with ExitStack() as stack:
        begun(engine, stack, uuid4().hex)
        answer = engine.post("/flush_cache", {})
        assert (answer.status, answer.text) == (400, "Flush cache failed.\n")
        usage = engine.chat(text).json["usage"]
    assert usage["prompt_tokens_details"] == {"cached_tokens": prompt - 1}


def check_health(engine: Engine) -> None:
    """07: `/health` generates a token and looks for it once a second; `/ready` only answers."""
    for path in ("/health", "/health_generate"):
        answer = engine.get(path)
        assert (answer.status, answer.raw) == (200, b"")
        assert answer.took_s >= 0.9
    answer = engine.get("/ready")
    assert (answer.status, answer.raw) == (200, b"")
    assert "content-type" not in answer.headers
    assert answer.took_s < 0.9


def check_metrics(engine: Engine) -> None:
    """06: the families a gateway reads, each of its type."""
    rid = uuid4().hex
    with ExitStack() as stack:
        stream = begun(engine, stack, rid)
        engine.abort(rid=rid)
        stream.rest()
    text = f"A cliff ({uuid4().hex})"
    for _ in range(2):
        engine.chat(text)
    types = families(engine)
    kind = engine.get("/metrics").headers["content-type"]
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    wanted = {
        **dict.fromkeys(GAUGES, "gauge"),
        **dict.fromkeys(COUNTERS, "counter"),
        **dict.fromkeys(HISTOGRAMS, "histogram"),
    }
    assert {name: types.get(name) for name in wanted} == wanted


def check_metrics_labels(engine: Engine) -> None:
    """06: the model's name is a label of most, the source of what is cached of its own, path and
    status of what was answered."""
    text = f"A shoal ({uuid4().hex})"
    for _ in range(2):
        engine.chat(text)
    said = engine.get("/metrics").text
    model = f'model_name="{engine.model}"'
    for name in ("num_running_reqs", "prompt_tokens_total", "time_to_first_token_seconds_count"):
        assert re.search(rf"^sglang:{name}{{[^}}]*{model}[^}}]*}} ", said, re.MULTILINE), name
    cached = r'^sglang:cached_tokens_total{[^}]*cache_source="device"[^}]*} '
    assert re.search(cached, said, re.MULTILINE)
    answered = re.findall(r"^sglang:http_responses_total{([^}]*)} ", said, re.MULTILINE)
    wanted = {f'endpoint="{CHAT}"', 'method="POST"', 'status_code="200"'}
    assert any(wanted <= set(labels.split(",")) for labels in answered)
