"""SGLang's command line, from settings."""

from dataclasses import replace

import pytest

from backend.sglang.launch import BREAKING, LaunchRefused, SglangSettings, launch_arguments

LEAST = SglangSettings("/models/a", "llama")


def test_the_least_settings_leave_sglang_its_defaults() -> None:
    """A model, an address, and what Weir relies on; nothing else is decided."""
    assert launch_arguments(LEAST) == [
        "--model-path=/models/a",
        "--served-model-name=llama",
        "--host=127.0.0.1",
        "--port=30000",
        "--tensor-parallel-size=1",
        "--enable-cache-report",
        "--enable-metrics",
        "--enable-priority-scheduling",
        "--disable-priority-preemption",
    ]


def test_every_setting_becomes_its_flag() -> None:
    """Under SGLang's own name, with its value; zero is a value."""
    settings = SglangSettings(
        model_path="-odd",
        served_model_name="llama",
        host="0.0.0.0",  # noqa: S104 - a worker on its own machine is reached from outside
        port=1,
        tensor_parallel_size=8,
        context_tokens=4096,
        kv_fraction=0.88,
        kv_tokens_max=640_000,
        max_running_requests=256,
        max_queued_requests=0,
        chunked_prefill_tokens=8192,
        precision="bfloat16",
        quantization="fp8",
        kv_precision="fp8_e4m3",
        device="cuda",
        tool_call_parser="qwen25",
        reasoning_parser="qwen3",
    )
    arguments = launch_arguments(settings)
    for flag in (
        "--model-path=-odd",
        "--host=0.0.0.0",
        "--port=1",
        "--tensor-parallel-size=8",
        "--context-length=4096",
        "--mem-fraction-static=0.88",
        "--max-total-tokens=640000",
        "--max-running-requests=256",
        "--max-queued-requests=0",
        "--chunked-prefill-size=8192",
        "--dtype=bfloat16",
        "--quantization=fp8",
        "--kv-cache-dtype=fp8_e4m3",
        "--device=cuda",
        "--tool-call-parser=qwen25",
        "--reasoning-parser=qwen3",
    ):
        assert flag in arguments


def test_what_follows_is_passed_on_last() -> None:
    """Where both set a flag, SGLang takes the later one."""
    extra = ["--attention-backend", "fa3", "--port", "7"]
    assert launch_arguments(LEAST, extra)[-4:] == extra


@pytest.mark.parametrize("flag", BREAKING)
def test_what_would_break_a_promise_is_refused(flag: str) -> None:
    """Also with a value or shortened; the message names the flag and says why."""
    for given in (flag, f"{flag}=1", flag[:-2]):
        with pytest.raises(LaunchRefused, match=f"^{flag} "):
            launch_arguments(replace(LEAST, port=1), [given])
