"""SGLang's command line for one worker of a Weir fleet. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

RELIED_ON = (
    # Without it usage does not say how much of a prompt was cached.
    "--enable-cache-report",
    # What `weir reconcile` compares rows with.
    "--enable-metrics",
    # A higher number is served first, which is the order the gateway asks for by class. Running
    # requests stay: a class orders the queue, it takes nothing back.
    "--enable-priority-scheduling",
    "--disable-priority-preemption",
)
"""Flags that every worker gets: the gateway counts and orders by them."""

BREAKING = {
    "--schedule-low-priority-values-first": "would serve batch before interactive",
    "--abort-on-priority-when-disabled": "contradicts priority scheduling",
    "--skip-tokenizer-init": "leaves no chat completions to serve",
    "--enable-return-hidden-states": "would let a request read what is not a tenant's",
    "--trust-request-chat-template": "would let a request run a template of its own",
    "--enable-custom-logit-processor": "would let a request run code on the worker",
}
"""Flags of SGLang that take away something the gateway promises, and what."""


class LaunchRefused(ValueError):
    """A flag cannot be passed on; the message names it and says why."""


@dataclass(frozen=True)
class SglangSettings:
    """One worker. None leaves SGLang its own default; token counts are of one replica."""

    model_path: str
    served_model_name: str
    host: str = "127.0.0.1"
    port: int = 30000
    tensor_parallel_size: int = 1
    """GPUs that hold one copy of the model together."""
    context_tokens: int | None = None
    """Longest prompt and answer together; None is the model's own."""
    kv_fraction: float | None = None
    """Of the GPU's memory, for weights and KV cache together."""
    kv_tokens_max: int | None = None
    """Caps the KV cache where less than `kv_fraction` gives is wanted."""
    max_running_requests: int | None = None
    max_queued_requests: int | None = None
    """The gateway queues by tenant and class; what waits in the engine is out of its hands."""
    chunked_prefill_tokens: int | None = None
    precision: str | None = None
    """SGLang's `--dtype`: of weights and activations."""
    quantization: str | None = None
    kv_precision: str | None = None
    """SGLang's `--kv-cache-dtype`."""
    device: str | None = None
    tool_call_parser: str | None = None
    reasoning_parser: str | None = None


def launch_arguments(settings: SglangSettings, extra: Sequence[str] = ()) -> list[str]:
    """What follows `python -m sglang.launch_server`: the settings, what Weir relies on, then
    `extra` as it is (where both set the same flag SGLang takes the later).

    Raises LaunchRefused where `extra` takes back what the gateway relies on.
    """
    for argument in extra:
        given = argument.partition("=")[0]
        for flag, effect in BREAKING.items():
            # SGLang takes the beginning of a flag for the whole, where only one begins so.
            if len(given) > len("--") and flag.startswith(given):
                raise LaunchRefused(f"{flag} {effect}")
    options: dict[str, object] = {
        "--model-path": settings.model_path,
        "--served-model-name": settings.served_model_name,
        "--host": settings.host,
        "--port": settings.port,
        "--tensor-parallel-size": settings.tensor_parallel_size,
        "--context-length": settings.context_tokens,
        "--mem-fraction-static": settings.kv_fraction,
        "--max-total-tokens": settings.kv_tokens_max,
        "--max-running-requests": settings.max_running_requests,
        "--max-queued-requests": settings.max_queued_requests,
        "--chunked-prefill-size": settings.chunked_prefill_tokens,
        "--dtype": settings.precision,
        "--quantization": settings.quantization,
        "--kv-cache-dtype": settings.kv_precision,
        "--device": settings.device,
        "--tool-call-parser": settings.tool_call_parser,
        "--reasoning-parser": settings.reasoning_parser,
    }
    chosen = [f"{flag}={value}" for flag, value in options.items() if value is not None]
    return [*chosen, *RELIED_ON, *extra]
