"""How tokens are to be chosen: ranges checked, and nothing asked for that the engine cannot do."""

import math

import msgspec

from backend.sglang_http.engine import Sampling
from backend.sglang_http.refusals import Refused
from backend.sglang_http.wire import SharedFields


def read_sampling(
    body: SharedFields, max_tokens: int, top_logprobs: int | None, defaults: dict[str, float]
) -> Sampling:
    """The body's sampling parameters. Raises Refused for one that is out of range."""
    temperature = defaults.get("temperature") if body.temperature is None else body.temperature
    top_p = defaults.get("top_p") if body.top_p is None else body.top_p
    _check_range("temperature", temperature, low=0.0, high=math.inf, wording="non-negative finite")
    _check_range("top_p", top_p, low=0.0, high=1.0, wording="in (0, 1]", above_low=True)
    _check_range("min_p", body.min_p, low=0.0, high=1.0, wording="in [0, 1]")
    _check_range("frequency_penalty", body.frequency_penalty, low=-2, high=2, wording="in [-2, 2]")
    _check_range("presence_penalty", body.presence_penalty, low=-2, high=2, wording="in [-2, 2]")
    _check_range(
        "repetition_penalty",
        body.repetition_penalty,
        low=0,
        high=2,
        wording="in (0, 2]",
        above_low=True,
    )
    if body.top_k is not None and body.top_k != -1 and body.top_k < 1:
        raise Refused(f"top_k must be -1 (disable) or at least 1, got {body.top_k}.")
    stop = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    schema, regex = _grammar(body)
    return Sampling(
        max_tokens=max_tokens,
        temperature=temperature,
        top_p=top_p,
        top_k=None if body.top_k == -1 else body.top_k,
        min_p=body.min_p or None,
        frequency_penalty=body.frequency_penalty or 0.0,
        presence_penalty=body.presence_penalty or 0.0,
        repetition_penalty=1.0 if body.repetition_penalty is None else body.repetition_penalty,
        seed=body.seed,
        logit_bias=_logit_bias(body.logit_bias),
        stop=stop,
        ignore_eos=bool(body.ignore_eos),
        min_tokens=_min_tokens(body.min_tokens, max_tokens),
        regex=regex,
        json_schema=schema,
        top_logprobs=top_logprobs,
    )


def _check_range(
    name: str,
    value: float | None,
    *,
    low: float,
    high: float,
    wording: str,
    above_low: bool = False,
) -> None:
    if value is None:
        return
    inside = low <= value <= high and math.isfinite(value) and not (above_low and value == low)
    if not inside:
        noun = "a non-negative finite number" if wording == "non-negative finite" else wording
        raise Refused(f"{name} must be {noun}, got {value}.")


def _min_tokens(asked: int | None, max_tokens: int) -> int:
    if asked is None:
        return 0
    if not 0 <= asked <= max_tokens:
        raise Refused(f"min_new_tokens must be in [0, max_new_tokens({max_tokens})], got {asked}.")
    return asked


def _logit_bias(raw: dict[str, float] | None) -> dict[int, float] | None:
    if not raw:
        return None
    try:
        return {int(token): bias for token, bias in raw.items()}
    except ValueError:
        raise Refused("logit_bias has keys that are not token ids.") from None


def _grammar(body: SharedFields) -> tuple[str | None, str | None]:
    """The JSON schema and the regular expression asked for, at most one of them."""
    schema = body.json_schema
    form = body.response_format
    if form is not None and form.type == "json_schema":
        inner = (form.json_schema or {}).get("schema")
        if inner is None:
            raise Refused("response_format.json_schema has no schema.")
        schema = bytes(inner).decode()
    elif form is not None and form.type == "json_object":
        schema = '{"type":"object"}'
    elif form is not None and form.type != "text":
        raise Refused("This response_format is not supported by this worker.")
    if schema is not None and body.regex is not None:
        raise Refused("Only one of regex and json_schema can be given.")
    return schema, body.regex


# Each field's values that ask for nothing. Engines name what else they carry out.
_NEUTRAL: dict[str, tuple[object, ...]] = {
    "top_k": (None, -1),
    "min_p": (None, 0.0),
    "frequency_penalty": (None, 0.0),
    "presence_penalty": (None, 0.0),
    "repetition_penalty": (None, 1.0),
    "seed": (None,),
    "logit_bias": (None, {}),
    "ignore_eos": (None, False),
    "regex": (None,),
    "json_schema": (None,),
    "ebnf": (None,),
    "min_tokens": (None, 0),
    "stop_token_ids": (None, []),
    "stop_regex": (None,),
    "no_stop_trim": (None, False),
    "skip_special_tokens": (None, True),
    "lora_path": (None,),
    "session_params": (None,),
    "custom_logit_processor": (None,),
    "custom_params": (None,),
    "return_hidden_states": (None, False),
    "return_token_ids": (None, False),
    "return_meta_info": (None, False),
    "return_routed_experts": (None, False),
    "return_cached_tokens_details": (None, False),
    "return_spec_tokens_details": (None, False),
    "return_prompt_token_ids": (None, False),
    "return_input_ids_in_sglext": (None, False),
    "return_output_ids_in_sglext": (None, False),
    "return_sampling_mask": (None, False),
    "return_indexer_topk": (None, False),
    "return_entropy": (None, False),
    "return_logprob": (None, False),
    "logprob_start_len": (None, -1),
    "top_logprobs_num": (None, 0),
    "token_ids_logprob": (None, []),
    "watermark": (None,),
    "images_config": (None, {}),
    "mm_processor_kwargs": (None, {}),
    "video_config": (None, {}),
    "task": (None,),
    "input_embeds": (None,),
    "image_data": (None, []),
    "video_data": (None, []),
    "audio_data": (None, []),
    "lora_id": (None,),
    "max_thinking_tokens": (None,),
    "structural_tag": (None,),
    "spaces_between_special_tokens": (None, True),
    "stream_interval": (None,),
    "beam_width": (None, 1),
    "choice": (None,),
    "logprobs": (None, False),
    "continue_final_message": (None, False),
    "tools": (None, []),
    "tool_choice": (None, "none", "auto"),
    "reasoning_effort": (None, "none"),
    "input_ids": (None,),
    "chat_template_kwargs": (None, {}),
    "echo": (None, False),
    "suffix": (None, ""),
    "best_of": (None, 1),
}


def refuse_unsupported(body: msgspec.Struct, honours: frozenset[str]) -> None:
    """Raises Refused for a field that asks for something this engine does not carry out."""
    names = body.__struct_fields__
    for field, neutral in _NEUTRAL.items():
        if field in honours or field not in names:
            continue
        value = getattr(body, field)
        if isinstance(value, msgspec.Raw):
            value = msgspec.json.decode(value)
        # 0 equals False, and asks for something all the same.
        if not any(type(value) is type(none) and value == none for none in neutral):
            raise Refused(f"{field} is not supported by this worker.")
    form = body.response_format if isinstance(body, SharedFields) else None
    if form is not None and form.type != "text" and "json_schema" not in honours:
        raise Refused("response_format is not supported by this worker.")
