"""What POST /generate refuses, and under which keys its prompts are cached."""

import json
from typing import Any

import pytest

from backend.sglang_http.engine import GenerationRequest
from backend.sglang_http.generate import generate_refusal, plan_generate
from backend.sglang_http.refusals import Refused
from backend.sglang_http.wire import GenerateBody, decode
from backend.simulated.engine import SimulatedEngine
from backend.simulated.settings import SimulatedSettings


async def planned(**fields: Any) -> GenerationRequest:
    """The one sequence of a body with these fields."""
    body = decode(json.dumps({"text": "hi", **fields}).encode(), GenerateBody)
    plan = await plan_generate(body, SimulatedEngine(SimulatedSettings()))
    (sequence,) = plan.sequences
    return sequence


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("lora_path", "x"),
        ("image_data", "data:,"),
        ("audio_data", ["data:,"]),
        ("custom_logit_processor", "x"),
        ("return_hidden_states", True),
        ("session_params", {"id": "s"}),
        ("input_embeds", [[0.0]]),
        ("return_logprob", True),
        ("top_logprobs_num", 2),
        ("logprob_start_len", 0),
        ("token_ids_logprob", [1]),
        ("return_routed_experts", True),
        ("watermark", {"key": 1}),
        ("images_config", {"a": 1}),
    ],
)
async def test_what_it_cannot_do_is_refused(field: str, value: object) -> None:
    """By name, in the shape of this endpoint; the same field asking for nothing is not."""
    with pytest.raises(Refused, match=f"^{field} is not supported") as raised:
        await planned(**{field: value})
    body, in_stream = generate_refusal(raised.value)
    assert not in_stream
    assert json.loads(body) == {"error": {"message": raised.value.message}}
    await planned(**{field: None})


@pytest.mark.parametrize("field", ["structural_tag", "watermark", "stream_interval", "choice"])
async def test_so_are_sampling_parameters(field: str) -> None:
    """Those that SGLang knows; what it does not know has a refusal of its own."""
    with pytest.raises(Refused, match=f"^{field} is not supported"):
        await planned(sampling_params={field: 3})
    await planned(sampling_params={field: None})


async def test_what_sglang_does_not_know_is_ignored() -> None:
    """As it does itself; so are values that ask for nothing."""
    await planned(
        frobnicate=1, top_logprobs_num=0, logprob_start_len=-1, return_hidden_states=False
    )


async def test_token_ids_are_a_prompt() -> None:
    """Here, and not in a chat."""
    assert (await planned(text=None, input_ids=[5, 6])).prompt.tokens == (5, 6)


@pytest.mark.parametrize("field", ["text", "input_ids"])
async def test_no_prompt_at_all(field: str) -> None:
    """An empty list is a 400 in this endpoint's shape."""
    with pytest.raises(Refused) as raised:
        await planned(**{"text": None, field: []})
    assert raised.value.status == 400
    assert set(json.loads(generate_refusal(raised.value)[0])) == {"error"}


async def test_salt_and_extra_key_keep_apart() -> None:
    """Each by itself and both together; the same two are the same, none of them is none."""
    told = [
        {},
        {"cache_salt": "a"},
        {"extra_key": "a"},
        {"cache_salt": "a", "extra_key": "b"},
        {"cache_salt": "b", "extra_key": "a"},
        {"cache_salt": "ab"},
        {"cache_salt": "1 a b"},
        {"extra_key": "1 a b"},
    ]
    digests = [(await planned(**each)).salt_digest for each in told]
    assert len(set(digests)) == len(told)
    assert digests[0] == b""
    assert (await planned(**told[3])).salt_digest == digests[3]
    assert (await planned(cache_salt="", extra_key="")).salt_digest == b""
