import json
from collections.abc import Callable, Sequence

import pytest
from memory_ports import FixedTokenizer
from tenant_examples import COUNTED, a_key, a_model, a_tenant, a_worker

from gateway.domain.engine_facts import EngineFacts, Need
from gateway.domain.expected_output import OBSERVATIONS_MIN, ExpectedOutput
from gateway.domain.tenant import Limits, ModelLimits
from gateway.domain.worker import WorkerView
from gateway.errors import ContextLengthExceeded, InvalidRequest
from gateway.serving.authenticate import Caller
from gateway.serving.estimate import TEMPLATE_TOKENS_BOUND, Estimate, estimate
from gateway.wire.request import CompletionRequest, read_request

Limited = Callable[[dict[str, int]], tuple[Limits | None, Limits | None]]


async def needs(
    *,
    tokens: int | None = 5,
    tenant: Limits | None = None,
    key: Limits | None = None,
    engines: Sequence[EngineFacts] = (),
    learned: ExpectedOutput | None = None,
    **fields: object,
) -> Estimate:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}
    request = read_request("chat", json.dumps(body).encode(), {})
    caller = Caller(a_tenant(tenant), a_key(key))
    workers = [WorkerView(a_worker(), True, 0, engine=engine) for engine in engines]
    tokenizer = FixedTokenizer(tokens)
    return await estimate(request, a_model(), caller, tokenizer, workers, learned=learned)


async def test_a_maximum_is_reserved_for_each_choice() -> None:
    """C10: the prompt once, the output for all; it is also what the engine is told."""
    need = await needs(max_tokens=50, n=3)
    assert (need.prompt_tokens, need.output_tokens, need.max_tokens) == (5, 150, 50)
    assert need.tokens == need.floor_tokens == 155


async def test_without_a_maximum_the_expectation_sizes_only_the_reservation() -> None:
    """R24: 20 are expected, 100 are allowed, and 6 are the least it can be refused for."""
    need = await needs()
    assert (need.output_tokens, need.max_tokens) == (20, 100)
    assert (need.tokens, need.floor_tokens) == (25, 6)


async def test_a_bound_knows_what_normalising_adds() -> None:
    """U+FDFA is 6 bytes in JSON and 33 in NFKC: a tokenizer may make a token of each."""
    plain, growing = [
        await needs(tokens=None, messages=[{"role": "user", "content": text * 10}])
        for text in ("\u6f22", "\ufdfa")
    ]
    assert growing.prompt_tokens == plain.prompt_tokens + 10 * (33 - 6)


async def test_the_default_maximum_fits_the_context() -> None:
    """Nothing is clamped by the engine behind our back: 990 of 1,000 leave 10."""
    need = await needs(tokens=990)
    assert (need.max_tokens, need.output_tokens) == (10, 10)


@pytest.mark.parametrize(
    ("tokens", "maximum", "fits"),
    [(950, 50, True), (950, 51, False), (1000, None, False), (999, None, True), (2000, 1, False)],
)
async def test_what_cannot_fit_is_a_400(tokens: int, maximum: int | None, fits: bool) -> None:
    """Prompt plus maximum against the context, to the token; the numbers are named."""
    if fits:
        assert (await needs(tokens=tokens, max_tokens=maximum)).max_tokens >= 1
        return
    with pytest.raises(ContextLengthExceeded, match="1000") as caught:
        await needs(tokens=tokens, max_tokens=maximum)
    assert caught.value.code == "context_length_exceeded"


POOL_500 = EngineFacts(context_tokens=1000, pool_tokens=500, input_bound_tokens=494, page_tokens=1)


@pytest.mark.parametrize(
    ("tokens", "maximum", "fits"),
    [(5, 493, True), (5, 494, False), (493, 5, True), (494, 1, False)],
)
async def test_what_no_engine_can_hold_is_a_400(tokens: int, maximum: int, fits: bool) -> None:
    """SGLang would cut the maximum down without a word: refused before dispatch, with tokens and
    room named."""
    engines = [POOL_500, EngineFacts(pool_tokens=100)]
    if fits:
        need = await needs(tokens=tokens, max_tokens=maximum, engines=engines, tenant=COUNTED)
        assert need.need == Need(tokens, maximum)
        return
    with pytest.raises(ContextLengthExceeded, match=rf"{tokens} .*a worker of m holds 498 tokens"):
        await needs(tokens=tokens, max_tokens=maximum, engines=engines, tenant=COUNTED)


async def test_the_default_maximum_is_what_the_roomiest_engine_holds() -> None:
    """It is the gateway's own, so nothing of the client's is cut: 450 of 500 leave 48."""
    engines = [EngineFacts(pool_tokens=460), POOL_500]
    assert (await needs(tokens=450, engines=engines, tenant=COUNTED)).max_tokens == 48


async def test_engines_that_say_nothing_bound_nothing() -> None:
    """Then the model's context does."""
    engines = [EngineFacts(), POOL_500]
    need = await needs(tokens=900, max_tokens=100, engines=engines, tenant=COUNTED)
    assert (need.max_tokens, need.exact) == (100, True)


async def test_a_prompt_that_nobody_counted_is_routed_anywhere() -> None:
    """A bound would refuse what may well fit."""
    assert (await needs(tokens=None, engines=[POOL_500])).need is None


SCOPES = [
    ("tenant", lambda own: (Limits(**own), None)),
    ("key key-1", lambda own: (None, Limits(**own))),
    ("model m", lambda own: (Limits(models={"m": ModelLimits(**own)}), None)),
    ("key key-1 and model m", lambda own: (None, Limits(models={"m": ModelLimits(**own)}))),
]
"""Each scope's name, and limits of tenant and key that hold in it alone."""


@pytest.mark.parametrize(("scope", "limited"), SCOPES)
async def test_a_prompt_has_a_limit_in_every_scope(scope: str, limited: Limited) -> None:
    """To the token; the refusal names scope, limit and need."""
    tenant, key = limited({"max_prompt_tokens": 4})
    assert (await needs(tokens=4, tenant=tenant, key=key)).exact
    text = f"the prompt has 5 tokens; the limit of the {scope} is 4 tokens of prompt"
    with pytest.raises(InvalidRequest, match=text) as caught:
        await needs(tokens=5, tenant=tenant, key=key)
    assert caught.value.param == "messages"


@pytest.mark.parametrize(("scope", "limited"), SCOPES)
async def test_output_has_a_limit_in_every_scope(scope: str, limited: Limited) -> None:
    """A maximum above it is refused, uncounted and named; the model's own is cut down to it."""
    tenant, key = limited({"max_output_tokens": 10})
    assert (await needs(tenant=tenant, key=key)).max_tokens == 10
    assert (await needs(tenant=tenant, key=key, max_tokens=10)).max_tokens == 10
    text = f"the limit of the {scope} is 10 output tokens a choice; 11 are asked for"
    with pytest.raises(InvalidRequest, match=text) as caught:
        await needs(tenant=tenant, key=key, max_tokens=11)
    assert caught.value.param == "max_tokens"
    tenant, key = limited({"max_output_tokens": 0})
    with pytest.raises(InvalidRequest, match=f"the limit of the {scope} is 0 output tokens"):
        await needs(tenant=tenant, key=key)


async def test_of_several_scopes_the_narrowest_holds() -> None:
    """Whichever it is."""
    tenant = Limits(max_output_tokens=30, models={"m": ModelLimits(max_output_tokens=7)})
    assert (await needs(tenant=tenant, key=Limits(max_output_tokens=10))).max_tokens == 7


async def test_another_models_limits_do_not_hold() -> None:
    """They are for requests of that model."""
    other = Limits(models={"n": ModelLimits(max_output_tokens=1, max_prompt_tokens=1)})
    assert (await needs(tenant=other, key=other)).max_tokens == 100


async def test_a_bound_covers_the_prompt() -> None:
    """INV-3: where nobody can count, the bytes and a template's text are reserved, tools with them;
    with a maximum that is what a limit must have room for. No record gets them."""
    tools = [{"type": "function", "function": {"name": "f" * 300}}]
    need = await needs(tokens=None, tools=tools, max_tokens=10)
    assert need.prompt_tokens > 300 + TEMPLATE_TOKENS_BOUND
    assert (need.exact, need.prompt_counts) == (False, (None,))
    assert need.floor_tokens == need.tokens == need.prompt_tokens + 10


async def test_a_long_text_is_not_refused_by_its_bytes() -> None:
    """2,000 bytes may be 400 tokens: a worker's count decides, where one can count."""
    message = [{"role": "user", "content": "word " * 400}]
    assert (await needs(tokens=400, messages=message)).max_tokens == 100


async def test_choices_have_two_digits() -> None:
    """An upstream id has no room for more than 100."""
    assert (await needs(n=100, max_tokens=1)).output_tokens == 100
    with pytest.raises(InvalidRequest, match="at most 100"):
        await needs(n=101)


async def test_many_choices_of_a_large_prompt_are_refused() -> None:
    """Each is sent the whole of it: 100 of 2 MB would be held at once."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 2_000_000}}
    message = [{"role": "user", "content": [{"type": "text", "text": "hi"}, image]}]
    assert (await needs(messages=message, n=67, max_tokens=1)).sequences == 67
    with pytest.raises(InvalidRequest, match="68 choices of so long a prompt") as caught:
        await needs(messages=message, n=68, max_tokens=1)
    assert caught.value.param == "n"


async def test_what_is_far_too_long_is_refused_uncounted() -> None:
    """INV-12: so many characters are too many tokens in any vocabulary; no worker is asked."""
    body = {"model": "m", "messages": [{"role": "user", "content": "x" * 256 * 1000}]}
    request = read_request("chat", json.dumps(body).encode(), {})
    with pytest.raises(ContextLengthExceeded, match="over 1000 tokens"):
        await estimate(request, a_model(), Caller(a_tenant(None), a_key(None)), NeverAsked())


async def test_what_exceeds_a_limit_in_any_case_is_refused_uncounted() -> None:
    """R23: the maximum alone is over the limit; no worker is asked."""
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 11}
    request = read_request("chat", json.dumps(body).encode(), {})
    caller = Caller(a_tenant(Limits(tpm=11)), a_key(None))
    with pytest.raises(InvalidRequest, match="at least 12 tokens; the limit of the tenant is 11"):
        await estimate(request, a_model(), caller, NeverAsked())


class NeverAsked(FixedTokenizer):
    """A tokenizer that must not be asked."""

    def __init__(self) -> None:
        super().__init__(None)

    async def count(self, request: CompletionRequest, tenant_id: str) -> list[int] | None:
        """Fails the test."""
        raise AssertionError("a worker was asked")


async def test_r03_the_larger_of_two_maxima_is_reserved_and_sent() -> None:
    """R03: `max_tokens` 1 beside `max_completion_tokens` 80."""
    need = await needs(max_tokens=1, max_completion_tokens=80)
    assert (need.output_tokens, need.max_tokens, need.tokens) == (80, 80, 85)


async def test_r24_the_expectation_is_learned() -> None:
    """R24: it sizes the reservation of requests without a maximum alone, never what the engine is
    told; above the maximum it is cut down to that."""
    learned = ExpectedOutput()
    for _ in range(OBSERVATIONS_MIN):
        learned.observe("acme", "m", 9)
    need = await needs(learned=learned, n=2)
    assert (need.output_tokens, need.max_tokens, need.floor_tokens) == (18, 100, 6)
    assert (await needs(learned=learned, max_tokens=50)).output_tokens == 50
    for _ in range(500):
        learned.observe("acme", "m", 5000)
    assert (await needs(learned=learned)).output_tokens == 100


UNKNOWN = EngineFacts()


@pytest.mark.parametrize(
    ("tenant", "key"),
    [
        (None, None),
        (Limits(max_sequences=1, rpm=1), None),
        (None, Limits(max_prompt_tokens=600, max_output_tokens=100)),
        (Limits(models={"n": ModelLimits(tpm=1, monthly_budget="0.01")}), None),
    ],
)
async def test_what_nothing_depends_on_is_not_counted(
    tenant: Limits | None, key: Limits | None
) -> None:
    """Nobody can be refused for a reservation that no limit counts, so it may be too high."""
    need = await spared(tenant=tenant, key=key)
    assert (need.spared, need.exact, need.prompt_counts, need.need) == (True, False, (None,), None)
    assert need.max_tokens == 100
    assert (await spared(tenant=tenant, key=key, max_tokens=100, engines=[POOL_500])).spared


@pytest.mark.parametrize(
    ("tenant", "key"),
    [
        (Limits(tpm=10**9), None),
        (Limits(monthly_budget="999999999.00"), None),
        (None, Limits(models={"m": ModelLimits(tpm=10**9)})),
        (Limits(max_prompt_tokens=200), None),
    ],
)
async def test_what_a_limit_depends_on_is_counted(
    tenant: Limits | None, key: Limits | None
) -> None:
    """However much room there is: a reservation by bytes would refuse others wrongly. A limit on
    the prompt's length only where the bytes are over it."""
    need = await needs(tenant=tenant, key=key, engines=[UNKNOWN])
    assert (need.prompt_tokens, need.exact, need.spared) == (5, True, False)


async def test_what_the_bytes_do_not_fit_is_counted() -> None:
    """The context with the whole maximum, or any engine: what an engine is told must not depend
    on whether the prompt was counted."""
    text = [{"role": "user", "content": "word " * 140}]
    assert (await needs(messages=text, engines=[UNKNOWN])).exact
    assert (await needs(messages=text, engines=[UNKNOWN], max_tokens=950)).exact
    assert (await needs(engines=[UNKNOWN, EngineFacts(pool_tokens=300)])).exact


async def test_media_are_counted() -> None:
    """S14: their bytes bound nothing. Tokens that the tokenizer does not see may be a debt; money
    is reserved for all that the context holds."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    message = {"role": "user", "content": [{"type": "text", "text": "hi"}, image]}
    need = await needs(messages=[message], engines=[UNKNOWN], max_tokens=50)
    assert (need.exact, need.tokens, need.prompt_tokens_max) == (True, 55, 1000)
    assert not need.is_bounded
    assert (await needs(max_tokens=50)).is_bounded


async def spared(
    *,
    tenant: Limits | None,
    key: Limits | None,
    max_tokens: int | None = None,
    engines: Sequence[EngineFacts] = (UNKNOWN,),
) -> Estimate:
    """The estimate of a request that no worker may be asked about."""
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": max_tokens}
    request = read_request("chat", json.dumps(body).encode(), {})
    workers = [WorkerView(a_worker(), True, 0, engine=engine) for engine in engines]
    return await estimate(
        request, a_model(), Caller(a_tenant(tenant), a_key(key)), NeverAsked(), workers
    )
