"""What a worker says about itself: models, readiness, server and model information, loads."""

from datetime import UTC, datetime

import msgspec

from backend.sglang_http.engine import SGLANG_VERSION, Engine
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


class Queues(msgspec.Struct, frozen=True):
    """Where requests wait."""

    waiting: int
    grammar: int = 0
    paused: int = 0
    retracted: int = 0
    prealloc_ready: int = 0


class RankLoad(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's load. It is live; SGLang's own is a snapshot of up to 15 decode steps ago."""

    timestamp: float
    dp_rank: int = 0
    num_running_reqs: int
    num_waiting_reqs: int
    num_waiting_uncached_tokens: int
    num_used_tokens: int
    num_total_tokens: int
    num_active_tokens: int
    max_total_num_tokens: int
    max_running_requests: int
    token_usage: float
    gen_throughput: float
    cache_hit_rate: float
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
    """What runs, waits and is used now."""
    info, load, totals = engine.info, engine.load(), engine.ledger.totals
    now = now_ms()
    return Loads(
        timestamp=datetime.fromtimestamp(now / 1000, UTC).isoformat(),
        version=SGLANG_VERSION,
        accelerator=None,
        num_accelerators=0,
        weir_engine=info.name,
        loads=[
            RankLoad(
                timestamp=now / 1000,
                num_running_reqs=load.running,
                num_waiting_reqs=load.waiting,
                num_waiting_uncached_tokens=load.waiting_uncached_tokens,
                num_used_tokens=load.used_tokens,
                num_total_tokens=load.used_tokens + load.waiting_uncached_tokens,
                num_active_tokens=load.used_tokens + load.waiting_uncached_tokens,
                max_total_num_tokens=info.max_total_num_tokens,
                max_running_requests=info.max_running_requests,
                token_usage=round(load.used_tokens / info.max_total_num_tokens, 4),
                gen_throughput=round(load.gen_throughput, 2),
                cache_hit_rate=round(totals.cached_tokens / max(1, totals.prompt_tokens), 4),
                queues=Queues(waiting=load.waiting),
            )
        ],
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
        "enable_cache_report": True,
        # `priority` is taken and changes nothing.
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
