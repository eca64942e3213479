"""Reading a completion request: what the tenant asked, checked, and which fields go upstream."""

from collections.abc import Mapping

import msgspec

from gateway.errors import InvalidRequest, UnsupportedParameter
from gateway.wire.bodies import (
    BODIES,
    ChatBody,
    CompletionBody,
    Endpoint,
    SharedBody,
    StreamOptions,
)
from gateway.wire.engine_safety import refuse_harmful
from gateway.wire.fields import (
    CHAT_FIELDS,
    COMPLETION_FIELDS,
    PRIVILEGED_FIELDS,
    TEMPLATE_SWITCHES,
)
from gateway.wire.messages import forwarded_messages
from gateway.wire.normalised import growth_bytes
from gateway.wire.shape import refuse_unreadable
from gateway.wire.wrong_value import shown_name, wrong_value

RawFields = dict[str, msgspec.Raw]

_NONE = msgspec.Raw(b"")
_NULL = b"null"
_IN_PROMPT = ("tools", "chat_template_kwargs", "suffix")

PROMPTS_MAX = 128
SERVICE_TIERS = frozenset({"auto", "default", "flex", "priority"})


class CompletionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One checked request. `forward` holds the tenant's own fields as they came, the prompt
    included and what the gateway decides itself left out."""

    endpoint: Endpoint
    model: str
    stream: bool
    include_usage: bool
    continuous_usage: bool
    choices_per_prompt: int
    prompts: tuple[msgspec.Raw, ...]
    """Completions: each prompt as JSON. Chat: the messages, once."""
    max_tokens: int | None
    """The client's maximum output a choice; None where it set none."""
    asked_batch: bool
    self_hosted_only: bool
    """Whether the client itself forbade a hosted provider, whatever its tenant allows."""
    forward: RawFields
    prompt_characters: tuple[int, ...]
    """Characters of text in each prompt: a token covers only so many of them."""
    prompt_bytes: tuple[int, ...]
    """Size of each prompt as JSON, and of what else a template writes into it: with the template's
    own text, no fewer than its tokens, but for media."""
    prompt_growth_bytes: tuple[int, ...]
    """What a tokenizer's normalisation may add to that."""
    has_media: bool
    """Whether it has images, video or sound: how many tokens these are is the model's to say."""

    @property
    def sequences(self) -> int:
        """Sequences that run at once: choices of each prompt."""
        return self.choices_per_prompt * len(self.prompts)

    @property
    def suffix(self) -> msgspec.Raw | None:
        """What an engine that fills in the middle puts after each prompt; None where that is
        nothing."""
        raw = self.forward.get("suffix")
        return None if raw is None or bytes(raw) == b'""' else raw


def read_request(
    endpoint: Endpoint, body: bytes, headers: Mapping[bytes, bytes]
) -> CompletionRequest:
    """Check a body. Raises InvalidRequest, naming the field and never quoting the body."""
    fields = _top_level(body)
    _refuse_unknown(endpoint, fields)
    asked = _typed(endpoint, body)
    refuse_harmful(asked, fields)
    if isinstance(asked, ChatBody):
        fields["messages"] = forwarded_messages(asked.messages, fields["messages"])
        prompts: tuple[msgspec.Raw, ...] = (fields["messages"],)
    else:
        prompts = _prompts(asked, fields)
    in_prompts = b"".join(bytes(fields.get(name, _NONE)) for name in _IN_PROMPT)
    forwarded = CHAT_FIELDS if endpoint == "chat" else COMPLETION_FIELDS
    maxima = [
        maximum
        for maximum in (asked.max_tokens, getattr(asked, "max_completion_tokens", None))
        if maximum is not None
    ]
    options = asked.stream_options or StreamOptions()
    if asked.stream_options is not None:
        _check_stream_options(options, stream=bool(asked.stream))
    return CompletionRequest(
        endpoint=endpoint,
        model=asked.model,
        stream=bool(asked.stream),
        include_usage=bool(options.include_usage),
        continuous_usage=bool(options.continuous_usage_stats),
        choices_per_prompt=asked.n or 1,
        prompts=prompts,
        max_tokens=max(maxima, default=None),
        asked_batch=_asks_batch(asked, headers),
        self_hosted_only=_forbids_hosted(headers),
        # What is null is not set: OpenAI's SDKs send nulls, and SGLang refuses many of them.
        forward={
            name: raw for name, raw in fields.items() if name in forwarded and bytes(raw) != _NULL
        },
        prompt_characters=asked.prompt_characters,
        prompt_bytes=tuple(len(bytes(prompt)) + len(in_prompts) for prompt in prompts),
        prompt_growth_bytes=_growth(prompts, in_prompts),
        has_media=isinstance(asked, ChatBody) and asked.has_media,
    )


def _top_level(body: bytes) -> RawFields:
    if not body.strip():
        raise InvalidRequest("the body is empty; a JSON object is expected")
    try:
        if not body.isascii():
            body.decode()
        fields = msgspec.json.decode(body, type=RawFields)
    except UnicodeDecodeError:
        raise InvalidRequest("the body is not valid UTF-8") from None
    except msgspec.ValidationError:
        raise InvalidRequest("the body must be a JSON object") from None
    except (msgspec.DecodeError, RecursionError):
        raise InvalidRequest("the body is not valid JSON") from None
    refuse_unreadable(body)
    return fields


def _refuse_unknown(endpoint: Endpoint, fields: RawFields) -> None:
    known = BODIES[endpoint].__struct_fields__
    for name in fields:
        if name in PRIVILEGED_FIELDS:
            raise UnsupportedParameter(
                f"{name} is set by the gateway and cannot be set by a request", param=name
            )
        if name not in known:
            shown = shown_name(name)
            raise UnsupportedParameter(f"{shown} is not supported", param=shown)


def _typed(endpoint: Endpoint, body: bytes) -> ChatBody | CompletionBody:
    try:
        asked = msgspec.json.decode(body, type=BODIES[endpoint])
    except msgspec.ValidationError as error:
        raise wrong_value(error) from None
    except (msgspec.DecodeError, RecursionError):
        raise InvalidRequest("the body is not valid JSON") from None
    if isinstance(asked, ChatBody):
        _check_messages(asked)
    else:
        _check_prompt(asked)
    return asked


def _check_stream_options(options: StreamOptions, *, stream: bool) -> None:
    if not stream:
        raise InvalidRequest(
            "stream_options is only allowed when stream is true", param="stream_options"
        )
    if options.include_obfuscation:
        raise UnsupportedParameter(
            "of stream_options only include_usage, continuous_usage_stats can be set",
            param="stream_options",
        )


def _check_messages(asked: ChatBody) -> None:
    if not asked.messages:
        raise InvalidRequest("messages is required", param="messages")
    if asked.top_logprobs is not None and not asked.logprobs:
        raise InvalidRequest("top_logprobs needs logprobs to be true", param="top_logprobs")
    for name in asked.chat_template_kwargs or ():
        if name not in TEMPLATE_SWITCHES:
            # A template of the tenant's own would be a program that runs on the worker.
            raise UnsupportedParameter(
                f"of chat_template_kwargs only {', '.join(sorted(TEMPLATE_SWITCHES))} can be set",
                param="chat_template_kwargs",
            )


def _check_prompt(asked: CompletionBody) -> None:
    if asked.prompt == [] or 0 in asked.prompt_characters:
        raise InvalidRequest("prompt is required and must not be empty", param="prompt")
    if asked.best_of not in (None, asked.n or 1):
        raise UnsupportedParameter("best_of other than n is not supported", param="best_of")


def _prompts(asked: ChatBody | CompletionBody, fields: RawFields) -> tuple[msgspec.Raw, ...]:
    assert isinstance(asked, CompletionBody)  # noqa: S101 - the endpoint decided the type
    if isinstance(asked.prompt, str):
        return (fields["prompt"],)
    if len(asked.prompt) > PROMPTS_MAX:
        raise InvalidRequest(f"at most {PROMPTS_MAX} prompts in one request", param="prompt")
    return tuple(msgspec.Raw(msgspec.json.encode(prompt)) for prompt in asked.prompt)


def _growth(prompts: tuple[msgspec.Raw, ...], in_prompts: bytes) -> tuple[int, ...]:
    more = growth_bytes(in_prompts)
    return tuple(more + growth_bytes(bytes(prompt)) for prompt in prompts)


def _forbids_hosted(headers: Mapping[bytes, bytes]) -> bool:
    """`x-weir-data-policy` can only tighten: what the tenant forbids stays forbidden."""
    header = headers.get(b"x-weir-data-policy", b"").strip().lower()
    if header not in (b"", b"self_hosted_only", b"hosted_allowed"):
        raise InvalidRequest(
            "x-weir-data-policy must be self_hosted_only or hosted_allowed",
            param="x-weir-data-policy",
        )
    return header == b"self_hosted_only"


def _asks_batch(asked: SharedBody, headers: Mapping[bytes, bytes]) -> bool:
    header = headers.get(b"x-weir-class", b"").strip().lower()
    if header not in (b"", b"batch", b"interactive"):
        raise InvalidRequest("x-weir-class must be interactive or batch", param="x-weir-class")
    tier = asked.service_tier
    if tier is not None and tier not in SERVICE_TIERS:
        raise InvalidRequest(
            "service_tier must be auto, default, flex or priority", param="service_tier"
        )
    return header == b"batch" or tier == "flex"
