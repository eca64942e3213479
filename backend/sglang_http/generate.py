"""SGLang's own POST /generate: what is asked, and how it is refused."""

from dataclasses import replace

import msgspec

from backend.sglang_http.answers import DONE
from backend.sglang_http.engine import Engine, Prompt
from backend.sglang_http.generate_answer import late_refusal
from backend.sglang_http.planning import Plan, counted_tokens, decode_ids, plan_sequences
from backend.sglang_http.refusals import InputTooLong, Refused
from backend.sglang_http.sampling import refuse_unsupported
from backend.sglang_http.wire import CompletionBody, GenerateBody, GenerateSampling

MAX_NEW_TOKENS_DEFAULT = 128
_FIELDS = GenerateSampling.__struct_fields__


class UnknownField(Refused):
    """A sampling parameter that SGLang does not know."""


class GenerateRefused(Refused):
    """A refusal in the words of another endpoint, in this one's shape."""

    def __init__(self, refused: Refused, *, in_stream: bool) -> None:
        super().__init__(refused.message, status=refused.status, kind=refused.kind)
        self.in_stream = in_stream
        self.late = refused.in_stream if isinstance(refused, InputTooLong) else None


def generate_refusal(refused: Refused) -> tuple[bytes, bool]:
    """The answer's body, and whether it is that of a stream."""
    if isinstance(refused, UnknownField):
        return msgspec.json.encode({"error": refused.message}), False
    if refused.status != 400:
        return refused.body(), False
    if isinstance(refused, GenerateRefused) and refused.late is not None:
        return b"".join(late_refusal(refused.message, refused.late.rid)), True
    if isinstance(refused, GenerateRefused) and refused.in_stream:
        error = {
            "message": refused.message,
            "type": "invalid_request_error",
            "code": 400,
            "retryable": False,
        }
        return b"data: " + msgspec.json.encode({"error": error}) + b"\n\n" + DONE, True
    return msgspec.json.encode({"error": {"message": refused.message}}), False


async def plan_generate(body: GenerateBody, engine: Engine) -> Plan:
    """Plan it. Raises Refused."""
    sampling = _read_sampling(body.sampling_params)
    try:
        refuse_unsupported(body, frozenset({"input_ids"}))
        refuse_unsupported(sampling, engine.info.honours)
        prompts, listed = await _prompts(body, engine)
        asked = sampling.max_new_tokens
        shared = _as_completion(body, sampling)
        refuse_unsupported(shared, engine.info.honours - {"logprobs"})
        limit = MAX_NEW_TOKENS_DEFAULT if asked is None else asked
        plan = plan_sequences(shared, prompts, limit, engine, None)
    except Refused as refused:
        raise GenerateRefused(refused, in_stream=bool(body.stream)) from None
    if isinstance(body.rid, list):
        if len(body.rid) != len(plan.sequences):
            raise Refused("There must be as many rids as prompts.")
        named = zip(plan.sequences, body.rid, strict=True)
        plan = replace(plan, sequences=[replace(request, rid=rid) for request, rid in named])
    return replace(plan, listed=listed or len(plan.sequences) > 1)


def _read_sampling(raw: msgspec.Raw) -> GenerateSampling:
    if bytes(raw) == b"null":
        return GenerateSampling()
    try:
        given = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        unknown = next((name for name in given if name not in _FIELDS), None)
        if unknown is None:
            return msgspec.json.decode(raw, type=GenerateSampling)
    except msgspec.MsgspecError as error:
        raise Refused(f"1 validation error: {error}", kind="Bad Request") from None
    names = ", ".join(f"`{name}`" for name in _FIELDS)
    raise UnknownField(f"unknown field `{unknown}`, expected one of {names}")


async def _prompts(body: GenerateBody, engine: Engine) -> tuple[list[Prompt], bool]:
    """The prompts, and whether they came as a list."""
    if (body.text is None) == (body.input_ids is None):
        raise Refused("Either text or input_ids must be given, and only one of them.")
    enough = counted_tokens(engine)
    if isinstance(body.text, str):
        return [await engine.encode_text(body.text, enough=enough)], False
    if body.text is not None:
        if not body.text:
            raise Refused("text is one text, or a list of texts that is not empty.")
        return [await engine.encode_text(text, enough=enough) for text in body.text], True
    given = body.input_ids or []
    lists = [item for item in given if isinstance(item, list)]
    if lists and len(lists) == len(given):
        return [decode_ids(item, engine) for item in lists], True
    ids = [item for item in given if isinstance(item, int)]
    if not ids or len(ids) != len(given):
        raise Refused("input_ids is one list of ids, or a list of such lists.")
    return [decode_ids(ids, engine)], False


def _as_completion(body: GenerateBody, sampling: GenerateSampling) -> CompletionBody:
    """The same wishes under the names of /v1/completions, where they are read and refused."""
    return CompletionBody(
        prompt="",
        n=sampling.n,
        stream=body.stream,
        stop=sampling.stop,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        min_p=sampling.min_p,
        frequency_penalty=sampling.frequency_penalty,
        presence_penalty=sampling.presence_penalty,
        repetition_penalty=sampling.repetition_penalty,
        seed=sampling.sampling_seed,
        logit_bias=sampling.logit_bias,
        ignore_eos=sampling.ignore_eos,
        regex=sampling.regex,
        json_schema=sampling.json_schema,
        rid=body.rid if isinstance(body.rid, str) else None,
        cache_salt=body.cache_salt,
        extra_key=body.extra_key,
        priority=body.priority,
        ebnf=sampling.ebnf,
        min_tokens=sampling.min_new_tokens,
        stop_token_ids=sampling.stop_token_ids,
        stop_regex=sampling.stop_regex,
        no_stop_trim=sampling.no_stop_trim,
        skip_special_tokens=sampling.skip_special_tokens,
        custom_params=sampling.custom_params,
    )
