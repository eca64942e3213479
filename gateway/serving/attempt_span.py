"""What the span of one attempt says. Pure: values in, attributes out."""

from functools import lru_cache
from urllib.parse import urlsplit

from billing.domain.usage_record import Outcome
from gateway.domain.hosted import HostedTarget
from gateway.domain.tenant import Worker
from gateway.serving.choice import ENDS, FAILURES, Choice
from gateway.telemetry.tracing import Attributes, Value
from gateway.wire.usage import Usage

OPERATIONS = {"chat": "chat", "completions": "text_completion"}
"""The conventions' names of what is asked for, by endpoint."""
OTHER = "other"
"""A finish reason that is no word we know: an engine's own words are not ours to tell."""
_ADDRESSES_MAX = 1024
_FAULTS = {Outcome.WORKER_FAILED, Outcome.TIMED_OUT, Outcome.REFUSED}


def finish_reasons(said: list[str | None]) -> tuple[str, ...]:
    """As far as they are words we know."""
    known = ENDS | FAILURES
    return tuple(each if each in known else OTHER for each in said if each is not None)


@lru_cache(maxsize=_ADDRESSES_MAX)
def address_of(url: str) -> dict[str, Value]:
    """Where a worker is; of a URL that has no host or an odd port, as much as there is."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return {}
    return {} if host is None else {"server.address": host, "server.port": port}


def attempt_failure(outcome: Outcome, told: str | None, *, sent: bool) -> str | None:
    """What an attempt failed as: what was told of it, else its outcome where that is a fault; None
    where it did not fail. One that was not sent was refused by ourselves."""
    if not sent:
        return "send_refused"
    if outcome not in _FAULTS:
        return None
    return told or outcome.value


def attempt_attributes(
    choice: Choice,
    worker: Worker,
    outcome: Outcome,
    *,
    path: str,
    sequence: int,
    max_tokens: int,
    began_us: int,
    sent: bool,
) -> Attributes:
    """D13: its own use, whoever pays for what of it. What was not sent has used nothing, and of
    what the engine did not say there is nothing."""
    endpoint = "chat" if path.endswith("/chat/completions") else "completions"
    said: dict[str, Value] = {
        "gen_ai.operation.name": OPERATIONS[endpoint],
        "gen_ai.request.model": worker.model,
        "gen_ai.provider.name": worker.provider,
        "gen_ai.request.max_tokens": max_tokens,
        "gen_ai.request.stream": True,
        "weir.worker.id": worker.id,
        "weir.attempt": sequence,
        "weir.choice": choice.index,
        "weir.outcome": outcome.value,
        **address_of(worker.url),
    }
    if not sent:
        del said["weir.outcome"]
        return said
    served = worker.served_name if isinstance(worker, HostedTarget) else worker.model
    if choice.began:
        said["gen_ai.response.model"] = served
    if choice.finish_reason is not None:
        said["gen_ai.response.finish_reasons"] = finish_reasons([choice.finish_reason])
    if choice.first_token_us is not None and choice.first_token_us >= began_us:
        waited_s = (choice.first_token_us - began_us) / 1_000_000
        said["gen_ai.response.time_to_first_chunk"] = waited_s
    return said | usage_attributes(choice.usage, choice.output_tokens)


def usage_attributes(usage: Usage | None, output_tokens: int) -> dict[str, Value]:
    """Counts as the engine said them, output at least as much as was seen."""
    said: dict[str, Value] = {}
    if usage is not None or output_tokens:
        said["gen_ai.usage.output_tokens"] = output_tokens
    if usage is None:
        return said
    counts = {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    return said | {name: count for name, count in counts.items() if count is not None}
