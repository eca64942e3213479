"""What is decided of a request whose prompt nobody has counted."""

import json
from collections.abc import Sequence

import engine_events as events
import pytest
from hosted_examples import a_provider
from memory_gateway import MemoryGateway, error_of
from memory_ports import FixedTokenizer
from tenant_examples import a_key, a_model, a_tenant, a_worker

from gateway.domain.tenant import DataPolicy, EngineKind, Limits, ModelLimits
from gateway.domain.worker import WorkerView
from gateway.errors import ContextLengthExceeded, InvalidRequest, Overloaded
from gateway.serving.authenticate import Caller
from gateway.serving.estimate import TEMPLATE_TOKENS_BOUND, Estimate, estimate
from gateway.wire.request import read_request

Messages = list[dict[str, object]]


def text(characters: int) -> Messages:
    return [{"role": "user", "content": "x" * characters}]


async def uncounted(
    ready: Sequence[EngineKind] = (),
    *,
    messages: Messages | None = None,
    max_tokens: int | None = None,
    tenant: Limits | None = None,
    key: Limits | None = None,
) -> Estimate:
    body = {"model": "m", "messages": messages or text(2), "max_tokens": max_tokens}
    request = read_request("chat", json.dumps(body).encode(), {})
    workers = [WorkerView(a_worker(kind=kind), True, 0) for kind in ready]
    caller = Caller(a_tenant(tenant), a_key(key))
    return await estimate(request, a_model(), caller, FixedTokenizer(None), workers)


WRAPPED = len(json.dumps(text(0)).encode()) + TEMPLATE_TOKENS_BOUND
"""What the upper bound of `text(n)` has beside n."""
WITHIN = 1000 - WRAPPED - 50
"""Characters that certainly fit the context with 50 tokens of output."""


async def test_what_fits_by_the_upper_bound_goes_on() -> None:
    """Uncounted, to the byte: context, longest prompt, tokens a minute; a default maximum leaves
    room for all the bytes. Without a maximum tokens a minute are cut down, never refused (R02)."""
    bound = WITHIN + WRAPPED
    exactly = Limits(tpm=bound + 50, max_prompt_tokens=bound)
    need = await uncounted(max_tokens=50, messages=text(WITHIN), tenant=exactly, key=exactly)
    assert (need.prompt_tokens, need.max_tokens) == (bound, 50)
    assert (await uncounted(messages=text(WITHIN))).max_tokens == 50
    assert (await uncounted(tenant=Limits(tpm=100))).floor_tokens == 2


@pytest.mark.parametrize(
    ("characters", "maximum", "limits"),
    [
        (WITHIN + 1, 50, Limits()),
        (WITHIN, 51, Limits()),
        (1000 - WRAPPED, None, Limits()),
        (90_000, None, Limits()),
        (WITHIN, 50, Limits(tpm=WITHIN + WRAPPED + 49)),
        (WITHIN, 50, Limits(models={"m": ModelLimits(tpm=WITHIN + WRAPPED + 49)})),
        (2, 50, Limits(max_prompt_tokens=WRAPPED + 1)),
    ],
)
@pytest.mark.parametrize("ready", [[], [EngineKind.SGLANG], [EngineKind.OPENAI, EngineKind.SGLANG]])
async def test_what_nobody_can_tell_waits_for_a_worker(
    characters: int, maximum: int | None, limits: Limits, ready: list[EngineKind]
) -> None:
    """Over a limit by its bytes, not by what is certain: neither a 400, since the engine's count
    may well fit, nor sent to a provider past the limit; also while a worker that counts is ready
    and did not. The refusal has no number that looks like a count."""
    for tenant, key in ((limits, None), (None, limits)):
        with pytest.raises(Overloaded, match="cannot be counted") as caught:
            await uncounted(
                ready,
                messages=text(characters),
                max_tokens=maximum,
                tenant=tenant,
                key=key,
            )
        assert caught.value.code == "no_worker"
        assert not any(character.isdigit() for character in str(caught.value))


async def test_the_certain_is_refused_uncounted() -> None:
    """Even the fewest tokens that a text can have are too many: a 400 as ever, in any fleet."""
    fleets: tuple[list[EngineKind], ...] = ([], [EngineKind.SGLANG], [EngineKind.OPENAI])
    for ready in fleets:
        with pytest.raises(ContextLengthExceeded, match=r"at least 101 .* up to 900 output"):
            await uncounted(ready, messages=text(25_600), max_tokens=900)
        with pytest.raises(
            InvalidRequest, match="has at least 3 tokens; the limit of the key key-1 is 2"
        ):
            await uncounted(ready, messages=text(512), key=Limits(max_prompt_tokens=2))
        with pytest.raises(InvalidRequest, match="the limit of the key key-1 is 10 output tokens"):
            await uncounted(ready, max_tokens=50, key=Limits(max_output_tokens=10))


async def test_an_image_is_no_text() -> None:
    """Its bytes are not tokens, as far as is certain: never refused for them, only undecided."""
    url = "data:image/png;base64," + "A" * 300_000
    image = {"type": "image_url", "image_url": {"url": url}}
    with pytest.raises(Overloaded, match="cannot be counted"):
        await uncounted(max_tokens=50, messages=[{"role": "user", "content": [image]}])


async def test_workers_that_never_count_take_what_may_fit() -> None:
    """A plain OpenAI-compatible engine refuses itself what its context does not hold; what tenant
    and key set is decided by the bound, since no waiting helps, and the refusal says so."""
    long = text(90_000)
    assert (await uncounted([EngineKind.OPENAI], messages=long)).max_tokens == 100
    assert (await uncounted([EngineKind.OPENAI], messages=long, max_tokens=50)).max_tokens == 50
    assert (
        await uncounted([EngineKind.OPENAI], messages=long, tenant=Limits(tpm=9000))
    ).floor_tokens == 2
    message = f"may have up to {WRAPPED + 2} tokens, which no worker of m counts; the limit of"
    with pytest.raises(InvalidRequest, match=message):
        await uncounted(
            [EngineKind.OPENAI], messages=text(2), key=Limits(max_prompt_tokens=WRAPPED + 1)
        )
    with pytest.raises(InvalidRequest, match=r"may need up to .* the limit of the tenant is 300"):
        await uncounted(
            [EngineKind.OPENAI], messages=text(2), max_tokens=50, tenant=Limits(tpm=300)
        )


@pytest.mark.parametrize(
    ("characters", "status", "code"),
    [(WITHIN, 200, None), (90_000, 503, "no_worker"), (512, 400, "invalid_value")],
)
async def test_a_provider_gets_only_what_fits(
    characters: int, status: int, code: str | None
) -> None:
    """The whole line without a worker: the context, and a limit that the tenant set, hold for a
    hosted provider too."""
    gateway = MemoryGateway(events.answer(["a"]), workers=0)
    gateway.tokenizer.tokens = None
    limits = Limits(
        data_policy=DataPolicy.HOSTED_ALLOWED, max_prompt_tokens=2 if status == 400 else None
    )
    gateway.directory.one_tenant = a_tenant(limits)
    gateway.directory.all_providers = [a_provider()]
    client = await gateway.post(messages=text(characters))
    assert client.status == status
    if code is not None:
        assert error_of(client)["code"] == code
        assert gateway.engine.streams == []
        gateway.assert_nothing_admitted()


async def test_a_plain_engine_gets_a_long_prompt() -> None:
    """The whole line with a worker of a kind that never counts."""
    gateway = MemoryGateway(events.answer(["a"]))
    gateway.tokenizer.tokens = None
    gateway.directory.all_workers = [a_worker(kind=EngineKind.OPENAI)]
    assert (await gateway.post(messages=text(90_000))).status == 200
