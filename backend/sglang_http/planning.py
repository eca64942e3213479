"""From a request body to the sequences that the engine is asked for."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from backend.sglang_http.engine import Engine, EngineInfo, GenerationRequest, Message, Prompt
from backend.sglang_http.refusals import InputTooLong, LateRefusal, Refused
from backend.sglang_http.sampling import read_sampling, refuse_unsupported
from backend.sglang_http.wire import ChatBody, ChatMessage, CompletionBody, SharedFields

COMPLETION_MAX_TOKENS_DEFAULT = 16
COUNTED_CONTEXTS = 4
"""A prompt is refused for its length however much longer than the context it is: it is counted to
so many times the context, and the refusal's count is the least that it has."""


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
    listed: bool = False
    """Whether the answer is a list, where that is not told by its shape."""


async def plan_chat(body: ChatBody, engine: Engine) -> Plan:
    """Plan a chat completion. Raises Refused."""
    if not body.messages:
        raise Refused("Messages cannot be empty.")
    refuse_unsupported(body, engine.info.honours)
    messages = plain_messages(body.messages)
    continue_final = bool(body.continue_final_message) and messages[-1].role == "assistant"
    prompt = await engine.encode_chat(
        messages, continue_final=continue_final, enough=counted_tokens(engine)
    )
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
    return plan_sequences(body, [prompt], asked, engine, top_logprobs)


async def plan_completion(body: CompletionBody, engine: Engine) -> Plan:
    """Plan a text completion. Raises Refused."""
    # Nothing here answers a text completion with log probabilities.
    refuse_unsupported(body, engine.info.honours - {"logprobs"})
    prompts = await _encode_prompts(body.prompt, engine)
    asked = COMPLETION_MAX_TOKENS_DEFAULT if body.max_tokens is None else body.max_tokens
    return plan_sequences(body, prompts, asked, engine, None)


def plain_messages(messages: Sequence[ChatMessage]) -> list[Message]:
    """Messages with their text parts joined; a developer's is the system's. Raises Refused for what
    is not text."""
    plain = []
    for message in messages:
        content = message.content
        parts = content if isinstance(content, list) else []
        if (
            message.tool_calls
            or message.role in ("tool", "function")
            or any(part.type != "text" for part in parts)
        ):
            raise Refused("Only text in messages is supported by this worker.")
        if isinstance(content, list):
            content = " ".join(part.text for part in content)
        role = "system" if message.role == "developer" else message.role
        plain.append(Message(role, content or ""))
    return plain


async def _encode_prompts(
    prompt: str | list[str | int | list[int]], engine: Engine
) -> list[Prompt]:
    enough = counted_tokens(engine)
    if isinstance(prompt, str):
        return [await engine.encode_text(prompt, enough=enough)]
    if not prompt:
        raise Refused("Prompt cannot be empty.")
    if all(isinstance(item, int) for item in prompt):
        return [decode_ids([item for item in prompt if isinstance(item, int)], engine)]
    prompts = []
    for item in prompt:
        if isinstance(item, str):
            prompts.append(await engine.encode_text(item, enough=enough))
        elif isinstance(item, list):
            prompts.append(decode_ids(item, engine))
        else:
            raise Refused("A prompt list holds either texts or token ids.")
    return prompts


def counted_tokens(engine: Engine) -> int:
    """A prompt of so many tokens need not be counted further."""
    return COUNTED_CONTEXTS * engine.info.context_tokens


def decode_ids(tokens: list[int], engine: Engine) -> Prompt:
    """A prompt of token ids. Raises Refused where the engine does not take them."""
    decoded = engine.decode(tokens)
    if decoded is None:
        raise Refused("Prompts as token ids are not supported by this worker.")
    return decoded


def plan_sequences(
    body: SharedFields,
    prompts: list[Prompt],
    asked: int | None,
    engine: Engine,
    top_logprobs: int | None,
) -> Plan:
    """A plan of these prompts, `asked` tokens at most each. Raises Refused."""
    choices = 1 if body.n is None else body.n
    single = choices == 1 and len(prompts) == 1
    sequences = []
    for prompt in prompts:
        try:
            limit = _max_tokens(len(prompt.tokens), asked, engine.info)
        except InputTooLong as error:
            if body.stream:
                error.in_stream = _late_refusal(body)
            raise
        sampling = read_sampling(body, limit, top_logprobs, engine.info.sampling_defaults)
        for _ in range(choices):
            request = GenerationRequest(
                # With several choices SGLang gives each an id of its own, and so does this.
                rid=(body.rid or uuid.uuid4().hex) if single else uuid.uuid4().hex,
                prompt=prompt,
                sampling=sampling,
                stream=bool(body.stream),
                cache_salt=body.cache_salt or "",
                extra_key=body.extra_key or "",
                priority=body.priority,
            )
            reason = engine.refuse(request)
            if reason is not None:
                raise Refused(reason)
            sequences.append(request)
    return Plan(
        sequences=sequences,
        prompts=len(prompts),
        model=body.model,
        stream=bool(body.stream),
        include_usage=_includes_usage(body),
        continuous_usage=bool(body.stream_options and body.stream_options.continuous_usage_stats),
    )


def _includes_usage(body: SharedFields) -> bool:
    return bool(body.stream_options and body.stream_options.include_usage)


def _late_refusal(body: SharedFields) -> LateRefusal:
    return LateRefusal(body.rid or uuid.uuid4().hex, body.model, _includes_usage(body))


def _max_tokens(prompt_tokens: int, asked: int | None, info: EngineInfo) -> int:
    """As SGLang: beyond the context is refused, beyond what its memory can ever hold is cut down
    without a word."""
    context = info.context_tokens
    if prompt_tokens >= context:
        raise Refused(
            f"The input ({prompt_tokens} tokens) is longer than the model's context length "
            f"({context} tokens)."
        )
    if prompt_tokens >= info.max_req_input_len:
        raise InputTooLong(
            f"Input length ({prompt_tokens} tokens) exceeds the maximum allowed length "
            f"({info.max_req_input_len} tokens). Use a shorter input or enable "
            "--allow-auto-truncate."
        )
    room = info.max_req_len - prompt_tokens - 1
    if asked is None:
        return room
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
    return min(asked, room)
