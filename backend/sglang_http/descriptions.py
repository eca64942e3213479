"""What a worker says about itself: models, readiness, server and model information, loads."""

from datetime import UTC, datetime

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from backend.sglang_http.engine import SGLANG_VERSION, Engine, Load
from backend.sglang_http.ledger import now_ms


class ModelCard(msgspec.Struct, frozen=True):
    """One entry of `/v1/models`."""

    id: str
    object: str
    created: int
    owned_by: str
    root: str
    parent: None
    max_model_len: int


class ModelList(msgspec.Struct, frozen=True):
    """`/v1/models`."""

    object: str
    data: list[ModelCard]


class WireMemory(msgspec.Struct, frozen=True):
    """`memory`, in SGLang's order."""

    weight_gb: float
    kv_cache_gb: float
    graph_gb: float
    token_capacity: int


class Disaggregation(msgspec.Struct, frozen=True):
    """`disaggregation`: none."""

    mode: str = "null"
    prefill_bootstrap_queue_reqs: int = 0
    prefill_inflight_queue_reqs: int = 0
    decode_prealloc_queue_reqs: int = 0
    decode_transfer_queue_reqs: int = 0
    decode_retracted_queue_reqs: int = 0
    kv_transfer_speed_gb_s: float = 0.0
    kv_transfer_latency_ms: float = 0.0


class Queues(msgspec.Struct, frozen=True):
    """Where requests wait."""

    waiting: int
    grammar: int = 0
    paused: int = 0
    retracted: int = 0
    prealloc_ready: int = 0


class RankLoad(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's load. What only a scheduler knows is absent where the engine has none."""

    timestamp: float
    dp_rank: int = 0
    num_running_reqs: int
    num_waiting_reqs: int
    num_waiting_uncached_tokens: int
    num_used_tokens: int
    num_total_tokens: int
    num_active_tokens: int
    num_prealloc_ready_tokens: int | UnsetType = UNSET
    max_total_num_tokens: int
    max_running_requests: int
    token_usage: float
    gen_throughput: float
    cache_hit_rate: float
    utilization: float | UnsetType = UNSET
    total_prefill_uncached_tokens: int | UnsetType = UNSET
    total_prefill_busy_us: int | UnsetType = UNSET
    decode_moments: list[float] | UnsetType | None = UNSET
    memory: WireMemory | UnsetType = UNSET
    disaggregation: Disaggregation | UnsetType = UNSET
    queues: Queues


class Loads(msgspec.Struct, frozen=True):
    """`/v1/loads`."""

    timestamp: str
    version: str
    accelerator: None
    num_accelerators: int
    weir_engine: str
    loads: list[RankLoad]


def models(engine: Engine) -> ModelList:
    """The one model that is served."""
    info = engine.info
    card = ModelCard(
        id=info.model,
        object="model",
        created=now_ms() // 1000,
        owned_by=f"weir-{info.name}",
        root=info.model,
        parent=None,
        max_model_len=info.context_tokens,
    )
    return ModelList("list", [card])


def loads(engine: Engine) -> Loads:
    """What runs, waits and is used, as the engine published it last."""
    return Loads(
        timestamp=datetime.fromtimestamp(now_ms() / 1000, UTC).isoformat(),
        version=SGLANG_VERSION,
        accelerator=None,
        num_accelerators=0,
        weir_engine=engine.info.name,
        loads=[_rank(engine, engine.published())],
    )


def loads_text(engine: Engine) -> bytes:
    """The same as Prometheus text. A comment, which no parser reads, names the engine."""
    rank = msgspec.to_builtins(_rank(engine, engine.published()))
    lines = [f"# weir_engine {engine.info.name}"]
    for name, value in rank.items():
        if name == "dp_rank" or isinstance(value, list) or value is None:
            continue
        group = {"disaggregation": "disagg"}.get(name, name)
        inner = (
            {f"{group}_{key}": each for key, each in value.items()}
            if isinstance(value, dict)
            else {name: value}
        )
        for key, each in inner.items():
            if not isinstance(each, str):
                full = f"sglang_{key}"
                lines += [f"# TYPE {full} gauge", f'{full}{{dp_rank="0"}} {each}']
    return ("\n".join(lines) + "\n").encode()


def _rank(engine: Engine, load: Load) -> RankLoad:
    info, totals, scheduled = engine.info, engine.ledger.totals, load.scheduled
    total = load.used_tokens + load.waiting_uncached_tokens
    rank = RankLoad(
        timestamp=now_ms() / 1000,
        num_running_reqs=load.running,
        num_waiting_reqs=load.waiting,
        num_waiting_uncached_tokens=load.waiting_uncached_tokens,
        num_used_tokens=load.used_tokens,
        num_total_tokens=total,
        num_active_tokens=total,
        max_total_num_tokens=info.max_total_num_tokens,
        max_running_requests=info.max_running_requests,
        token_usage=round(load.used_tokens / info.max_total_num_tokens, 4),
        gen_throughput=round(load.gen_throughput, 2),
        cache_hit_rate=round(totals.cached_tokens / max(1, totals.prompt_tokens), 4),
        queues=Queues(waiting=load.waiting),
    )
    if scheduled is None:
        return rank
    return replace(
        rank,
        timestamp=scheduled.at_s,
        num_total_tokens=scheduled.active_tokens,
        num_active_tokens=scheduled.active_tokens,
        num_prealloc_ready_tokens=0,
        cache_hit_rate=round(scheduled.cache_hit_rate, 4),
        utilization=0.0,
        total_prefill_uncached_tokens=scheduled.prefill_tokens,
        total_prefill_busy_us=scheduled.prefill_busy_us,
        decode_moments=list(scheduled.decode_moments) if scheduled.decode_moments[0] else None,
        memory=WireMemory(0.0, 0.0, 0.0, info.max_total_num_tokens),
        disaggregation=Disaggregation(),
        queues=Queues(waiting=load.waiting, retracted=scheduled.retracted),
    )


def server_info(engine: Engine) -> dict[str, object]:
    """The part of SGLang's server information that a gateway reads, and which engine this is."""
    info, load = engine.info, engine.load()
    return {
        "model_path": info.model_path,
        "tokenizer_path": info.model_path,
        "served_model_name": info.model,
        "context_length": info.context_tokens,
        "max_running_requests": info.max_running_requests,
        "max_queued_requests": info.max_queued_requests,
        "status": "ready" if engine.ready else "starting",
        "max_total_num_tokens": info.max_total_num_tokens,
        "max_req_input_len": info.max_req_input_len,
        "page_size": 1,
        "enable_cache_report": info.reports_cache,
        # Where nothing else is said below, `priority` is taken and changes nothing.
        "enable_priority_scheduling": False,
        "schedule_low_priority_values_first": False,
        "disable_priority_preemption": False,
        "priority_scheduling_preemption_threshold": 10,
        "internal_states": [
            {
                "last_gen_throughput": round(load.gen_throughput, 2),
                "effective_max_running_requests_per_dp": info.max_running_requests,
            }
        ],
        "version": SGLANG_VERSION,
        "weir_engine": info.name,
        "weir_engine_description": info.description,
        **info.settings,
    }


def model_info(engine: Engine) -> dict[str, object]:
    """SGLang's model information, as far as it applies."""
    info = engine.info
    return {
        "model_path": info.model_path,
        "served_model_name": info.model,
        "tokenizer_path": info.model_path,
        "is_generation": True,
        "preferred_sampling_params": info.sampling_defaults or None,
        "weight_version": "default",
        "has_image_understanding": False,
        "has_audio_understanding": False,
        "weir_engine": info.name,
        "weir_engine_description": info.description,
    }
