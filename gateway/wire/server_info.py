"""Reading SGLang's `/server_info`: what an engine says of itself."""

from typing import TypeVar

import msgspec

from gateway.domain.engine_facts import EngineFacts
from gateway.domain.worker import SIMULATED_ENGINE
from gateway.wire.request import RawFields

_TEXT_CHARACTERS_MAX = 64
_TOKENS_MAX = 2**53
_T = TypeVar("_T")


class _Rank(msgspec.Struct):
    effective_max_running_requests_per_dp: int | None = None


def read_server_info(body: bytes) -> EngineFacts:
    """The facts that routing and admission go by. A value that is missing, or not of the kind it
    should be, is None. Raises ValueError where the body is no JSON object at all."""
    try:
        fields = msgspec.json.decode(body, type=RawFields)
    except (msgspec.DecodeError, RecursionError):
        raise ValueError("the engine's information is no JSON object") from None
    version = _value(fields, "version", str)
    own_engine = _value(fields, "weir_engine", str)
    return EngineFacts(
        version=version[:_TEXT_CHARACTERS_MAX] if version and version.isprintable() else None,
        priority_scheduling=_value(fields, "enable_priority_scheduling", bool),
        lowest_priority_first=_value(fields, "schedule_low_priority_values_first", bool),
        cache_report=_value(fields, "enable_cache_report", bool),
        context_tokens=_tokens(fields, "context_length"),
        pool_tokens=_tokens(fields, "max_total_num_tokens"),
        input_bound_tokens=_tokens(fields, "max_req_input_len"),
        page_tokens=_tokens(fields, "page_size"),
        running_max=_running_max(fields),
        simulated=None if own_engine is None else own_engine == SIMULATED_ENGINE,
    )


def _running_max(fields: RawFields) -> int | None:
    """What its ranks run together, as far as they say: the option may be left to the engine, and
    holds for each rank or for all depending on others."""
    ranks = _value(fields, "internal_states", list[_Rank]) or []
    each = [rank.effective_max_running_requests_per_dp or 0 for rank in ranks]
    return sum(each) if each and min(each) > 0 else _tokens(fields, "max_running_requests")


def _value(fields: RawFields, name: str, kind: type[_T]) -> _T | None:
    if name not in fields:
        return None
    try:
        return msgspec.json.decode(fields[name], type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None


def _tokens(fields: RawFields, name: str) -> int | None:
    count = _value(fields, name, int)
    return count if count is not None and 0 < count <= _TOKENS_MAX else None
