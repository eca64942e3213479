"""From a request body to the sequences that the engine is asked for."""

import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from backend.sglang_http.engine import Engine, GenerationRequest, Message, Prompt, Sampling
from backend.sglang_http.refusals import Refused
from backend.sglang_http.wire import ChatBody, ChatMessage, CompletionBody, SharedFields

COMPLETION_MAX_TOKENS_DEFAULT = 16


@dataclass(frozen=True, slots=True)
class Plan:
    """One HTTP request as the engine will run it. Choices are numbered as `sequences` lie."""

    sequences: list[GenerationRequest]
    prompts: int
    """How many prompts there are; each has as many sequences as `n` asks."""
    model: str
    stream: bool
    include_usage: bool
    continuous_usage: bool


async def plan_chat(body: ChatBody, engine: Engine) -> Plan:
    """Plan a chat completion. Raises Refused."""
    if not body.messages:
        raise Refused("Messages cannot be empty.")
    _refuse_unsupported(body, engine.info.honours)
    messages = plain_messages(body.messages)
    continue_final = bool(body.continue_final_message) and messages[-1].role == "assistant"
    prompt = await engine.encode_chat(messages, continue_final=continue_final)
    context = engine.info.context_tokens
    asked = body.max_completion_tokens
    if asked is None:
        asked = body.max_tokens
    if asked is not None and asked > context:
        raise Refused(
            f"max_completion_tokens is too large: {asked}."
            f"This model supports at most {context} completion tokens."
        )
    top_logprobs = (body.top_logprobs or 0) if body.logprobs else None
    return _plan(body, [prompt], asked, engine, top_logprobs)


async def plan_completion(body: CompletionBody, engine: Engine) -> Plan:
    """Plan a text completion. Raises Refused."""
    _refuse_unsupported(body, engine.info.honours)
    prompts = await _encode_prompts(body.prompt, engine)
    asked = COMPLETION_MAX_TOKENS_DEFAULT if body.max_tokens is None else body.max_tokens
    return _plan(body, prompts, asked, engine, None)


def plain_messages(messages: Sequence[ChatMessage]) -> list[Message]:
    """Messages with their text parts joined. Raises Refused for a part that is not text."""
    plain = []
    for message in messages:
        content = message.content
        if isinstance(content, list):
            if any(part.type != "text" for part in content):
                raise Refused("Only text content is supported by this worker.")
            content = " ".join(part.text for part in content)
        plain.append(Message(message.role, content or ""))
    return plain


async def _encode_prompts(
    prompt: str | list[str | int | list[int]], engine: Engine
) -> list[Prompt]:
    if isinstance(prompt, str):
        return [await engine.encode_text(prompt)]
    if not prompt:
        raise Refused("Prompt cannot be empty.")
    if all(isinstance(item, int) for item in prompt):
        return [_decode_ids([item for item in prompt if isinstance(item, int)], engine)]
    prompts = []
    for item in prompt:
        if isinstance(item, str):
            prompts.append(await engine.encode_text(item))
        elif isinstance(item, list):
            prompts.append(_decode_ids(item, engine))
        else:
            raise Refused("A prompt list holds either texts or token ids.")
    return prompts


def _decode_ids(tokens: list[int], engine: Engine) -> Prompt:
    decoded = engine.decode(tokens)
    if decoded is None:
        raise Refused("Prompts as token ids are not supported by this worker.")
    return decoded


def _plan(
    body: SharedFields,
    prompts: list[Prompt],
    asked: int | None,
    engine: Engine,
    top_logprobs: int | None,
) -> Plan:
    choices = 1 if body.n is None else body.n
    single = choices == 1 and len(prompts) == 1
    sequences = []
    for prompt in prompts:
        limit = _max_tokens(len(prompt.tokens), asked, engine.info.context_tokens)
        sampling = _sampling(body, limit, top_logprobs, engine.info.sampling_defaults)
        for _ in range(choices):
            request = GenerationRequest(
                # With several choices SGLang gives each an id of its own, and so does this.
                rid=(body.rid or uuid.uuid4().hex) if single else uuid.uuid4().hex,
                prompt=prompt,
                sampling=sampling,
                stream=bool(body.stream),
                cache_salt=body.cache_salt or "",
                priority=body.priority,
            )
            reason = engine.refuse(request)
            if reason is not None:
                raise Refused(reason)
            sequences.append(request)
    options = body.stream_options
    return Plan(
        sequences=sequences,
        prompts=len(prompts),
        model=body.model,
        stream=bool(body.stream),
        include_usage=bool(options and options.include_usage),
        continuous_usage=bool(options and options.continuous_usage_stats),
    )


def _max_tokens(prompt_tokens: int, asked: int | None, context: int) -> int:
    if prompt_tokens >= context:
        raise Refused(
            f"The input ({prompt_tokens} tokens) is longer than the model's context length "
            f"({context} tokens)."
        )
    if asked is None:
        return context - prompt_tokens
    if asked < 0:
        raise Refused(f"max_new_tokens must be at least 0, got {asked}.")
    if prompt_tokens + asked > context:
        raise Refused(
            "Requested token count exceeds the model's maximum context length of "
            f"{context} tokens. You requested a total of {prompt_tokens + asked} tokens: "
            f"{prompt_tokens} tokens from the input messages and {asked} tokens for the "
            "completion. Please reduce the number of tokens in the input messages or the "
            "completion to fit within the limit."
        )
    return asked


def _sampling(
    body: SharedFields, max_tokens: int, top_logprobs: int | None, defaults: dict[str, float]
) -> Sampling:
    temperature = defaults.get("temperature") if body.temperature is None else body.temperature
    top_p = defaults.get("top_p") if body.top_p is None else body.top_p
    _check_range("temperature", temperature, low=0.0, high=math.inf, wording="non-negative finite")
    _check_range("top_p", top_p, low=0.0, high=1.0, wording="in (0, 1]", above_low=True)
    _check_range("min_p", body.min_p, low=0.0, high=1.0, wording="in [0, 1]")
    _check_range("frequency_penalty", body.frequency_penalty, low=-2, high=2, wording="in [-2, 2]")
    _check_range("presence_penalty", body.presence_penalty, low=-2, high=2, wording="in [-2, 2]")
    _check_range("repetition_penalty", body.repetition_penalty, low=0, high=2, wording="in [0, 2]")
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
    "logprobs": (None, False),
    "continue_final_message": (None, False),
    "tools": (None, []),
    "input_ids": (None,),
    "chat_template_kwargs": (None, {}),
    "echo": (None, False),
    "suffix": (None, ""),
    "best_of": (None, 1),
}


def _refuse_unsupported(body: SharedFields, honours: frozenset[str]) -> None:
    names = body.__struct_fields__
    for field, neutral in _NEUTRAL.items():
        if field in honours or field not in names:
            continue
        value = getattr(body, field)
        if isinstance(value, msgspec.Raw):
            value = msgspec.json.decode(value)
        if value not in neutral:
            raise Refused(f"{field} is not supported by this worker.")
    form = body.response_format
    if form is not None and form.type != "text" and "json_schema" not in honours:
        raise Refused("response_format is not supported by this worker.")
