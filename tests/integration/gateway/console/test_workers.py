"""The page on the fleet: workers removed, models registered, providers taken out and put back."""

from dataclasses import replace

import pytest
from console_visitor import ME, Visitor

from billing.domain.price_book import Price
from gateway.adapters.presence import Gateways
from gateway.administration.price_wishes import PriceTexts, read_price
from gateway.app import Gateway
from gateway.domain.account import Role
from gateway.domain.hosted import HostedModel, HostedProvider
from gateway.domain.presence import Heartbeat
from gateway.domain.tenant import Worker
from gateway.domain.worker import WorkerView
from gateway.errors import StoreUnavailable
from gateway.serving.ports import LedgerUnavailable

NEAR = HostedProvider(
    name="near", url="https://near.test/v1", models={"m": HostedModel(name="big-m")}
)


@pytest.fixture
async def near(visitor: Visitor, gateway: Gateway) -> HostedProvider:
    """A hosted provider that serves `m`, with a key."""
    provider = await visitor.administration.register_hosted_provider(ME, NEAR, api_key="secret-1")
    await gateway.directory.refresh()
    return provider


async def actions(visitor: Visitor) -> list[str]:
    """What the audit log has of those who came here, the latest first."""
    page = await visitor.administration.list_audit()
    return [entry.action for entry in page.items if entry.actor != ME]


async def test_a_worker_is_removed_after_it_was_asked_once_more(visitor: Visitor) -> None:
    """The question says what will happen; another's id, or one that is gone, is 404."""
    await visitor.log_in()
    page = (await visitor.get("/console/workers")).text
    assert 'id="remove-w" popover' in page
    assert "Gateways send it nothing from within a second on" in page
    assert "No other healthy worker" not in page
    answer = await visitor.post("/console/workers/w/remove")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/workers")
    assert "w is removed." in (await visitor.get("/console/workers")).text
    for action in ("remove", "drain", "resume"):
        assert (await visitor.post(f"/console/workers/w/{action}")).status_code == 404


async def test_a_worker_of_no_model_is_refused_at_its_field(visitor: Visitor) -> None:
    """And so is a class that there is none of; what was typed is kept."""
    await visitor.log_in()
    await visitor.get("/console/workers/new")
    fields = {
        "id": "w9",
        "model": "nope",
        "url": "http://127.0.0.1:9",
        "kind": "sglang",
        "engine": "sglang",
        "class": "",
    }
    answer = await visitor.post("/console/workers", fields)
    assert answer.status_code == 422
    assert 'id="f-model-error"' in answer.text
    assert 'value="w9"' in answer.text
    answer = await visitor.post("/console/workers", {**fields, "model": "m", "class": "x"})
    assert answer.status_code == 422
    assert "The kind or the class is none that there is." in answer.text


async def test_a_model_is_registered_and_changed(visitor: Visitor, gateway: Gateway) -> None:
    """What is wrong stands at its field, and nothing is registered."""
    await visitor.log_in()
    page = (await visitor.get("/console/workers/models/new")).text
    assert 'value="256"' in page
    fields = {
        "id": "n",
        "context_tokens": "4,096",
        "max_output_tokens": "many",
        "default_output_tokens": "",
    }
    answer = await visitor.post("/console/workers/models", fields)
    assert answer.status_code == 422
    assert 'id="f-max_output_tokens-error"' in answer.text
    assert 'value="4,096"' in answer.text
    answer = await visitor.post("/console/workers/models", fields | {"max_output_tokens": "0"})
    assert answer.status_code == 422
    assert [model.id for model in (await visitor.administration.list_models()).items] == ["m"]
    answer = await visitor.post("/console/workers/models", fields | {"max_output_tokens": "1024"})
    assert answer.status_code == 303
    model = (await visitor.administration.list_models()).items[1]
    assert (model.id, model.context_tokens, model.max_output_tokens) == ("n", 4_096, 1_024)
    assert model.default_output_tokens == 256
    await gateway.directory.refresh()
    page = (await visitor.get("/console/workers/models/new?model=n")).text
    assert 'value="4096"' in page
    page = (await visitor.get("/console/workers")).text
    row = page[page.index('id="model-n"') :]
    assert "no worker" in row[: row.index("</tr>")]


async def test_a_provider_is_disabled_and_enabled_with_its_key(
    visitor: Visitor, near: HostedProvider
) -> None:
    """All else of it stays; each is one entry in the audit log, twice the same is none."""
    await visitor.log_in()
    page = (await visitor.get("/console/workers")).text
    assert 'id="disable-near" popover' in page
    assert "secret-1" not in page
    for verb, said, enabled in (
        ("disable", "near is disabled", False),
        ("disable", "near is disabled", False),
        ("enable", "near is enabled", True),
    ):
        answer = await visitor.post(f"/console/workers/hosted/near/{verb}")
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/workers")
        assert said in (await visitor.get("/console/workers")).text
        kept = await visitor.administration.get_hosted_provider("near")
        assert (kept.enabled, kept.api_key, kept.url) == (enabled, "secret-1", near.url)
    found = [action for action in await actions(visitor) if action.startswith("hosted.")]
    assert found == ["hosted.enable", "hosted.disable"]
    assert (await visitor.post("/console/workers/hosted/nope/enable")).status_code == 404


async def test_only_who_may_sees_the_buttons_and_prices(
    visitor: Visitor, near: HostedProvider
) -> None:
    """An operator drains, and sees nothing of money."""
    await visitor.log_in(Role.OPERATOR)
    page = (await visitor.get("/console/workers")).text
    assert "/console/workers/w/drain" in page
    for text in ("Remove", "Disable", "models/new", "List price", "list price", "priced"):
        assert text not in page
    answer = await visitor.post("/console/workers/hosted/near/disable")
    assert answer.status_code == 403
    assert (await visitor.administration.get_hosted_provider("near")).enabled


async def test_a_missing_price_is_told_until_there_is_one(
    visitor: Visitor, gateway: Gateway, near: HostedProvider
) -> None:
    """Of the model, and of what a provider serves: no other's price stands in."""
    await visitor.log_in(Role.FINANCE)
    page = (await visitor.get("/console/workers")).text
    assert "No list price: m." in page
    assert "list price missing" in page
    assert "what the provider charges is not known" in page
    for provider in ("self", "hosted:near"):
        await _price(visitor, gateway, provider)
        page = (await visitor.get("/console/workers")).text
        assert "No list price: m." not in page
        assert ("list price missing" in page) == (provider == "self")
    assert "in USD" in page


async def _price(visitor: Visitor, gateway: Gateway, provider: str) -> Price:
    wanted = read_price(PriceTexts(model="m", provider=provider, input="1", output="2"))
    price = await visitor.administration.set_price(ME, wanted)
    await gateway.directory.refresh()
    return price


async def test_the_last_healthy_worker_is_removed_with_a_warning(
    visitor: Visitor, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that drains takes none of its requests in its place, and has no warning itself."""
    await visitor.administration.register_worker(
        ME, Worker(id="v", model="m", url="http://127.0.0.1:2")
    )
    await visitor.administration.drain_worker(ME, "v")
    await gateway.directory.refresh()
    views = gateway.fleet.views

    def healthy(model: str | None = None) -> list[WorkerView]:
        return [replace(view, healthy=True) for view in views(model)]

    monkeypatch.setattr(gateway.fleet, "views", healthy)
    await visitor.log_in()
    page = (await visitor.get("/console/workers")).text
    assert page.count("No other healthy worker takes requests for m") == 1
    assert page.index("No other healthy") > page.index('id="worker-w"')


async def test_while_postgres_is_away_nothing_is_changed_and_it_is_said(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503, and the page is still there."""
    await visitor.log_in()
    await visitor.get("/console/workers")

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("Postgres cannot be reached")

    monkeypatch.setattr(type(visitor.administration), "drain_worker", away)
    answer = await visitor.post("/console/workers/w/drain")
    assert answer.status_code == 503
    assert "A store cannot be reached" in answer.text
    assert (await visitor.get("/console/workers")).status_code == 200


@pytest.mark.parametrize(("engine", "said"), [("simulated", True), ("sglang", False)])
async def test_every_page_says_that_simulated_workers_serve_here(
    visitor: Visitor, gateway: Gateway, engine: str, said: bool
) -> None:
    """To whoever is logged in: times, tokens and money on the page come of them too."""
    worker = Worker(id="v", model="m", url="http://127.0.0.1:2", engine=engine)
    await visitor.administration.register_worker(ME, worker)
    await gateway.directory.refresh()
    await visitor.log_in()
    for path in ("/console/live", "/console/usage", "/console/money/unit-cost"):
        assert ("simulated workers" in (await visitor.get(path)).text) is said


async def test_gateways_are_found_by_the_ids_that_confirmations_name(
    visitor: Visitor, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that were heard of, this one too; without Redis nobody knows of any."""
    await gateway.gateways.tell("gw-other", 0, Heartbeat(1, 5, 3, 5))
    await visitor.log_in(Role.VIEWER)
    for path in ("/console/workers", "/console/workers/now"):
        page = (await visitor.get(path)).text
        assert f'id="gateway-{gateway.journal.gateway_id}"' in page
        row = page[page.index('id="gateway-gw-other"') :].partition("</tr>")[0]
        assert "heard of" in row
        assert '<td class="number">3</td>' in row

    async def away(_: object) -> None:
        raise LedgerUnavailable(TimeoutError)

    monkeypatch.setattr(Gateways, "census", away)
    page = (await visitor.get("/console/workers")).text
    assert "Gateways are known again with Redis" in page
    assert 'id="worker-w"' in page
