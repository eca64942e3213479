"""Hosted providers on the admin API."""

from typing import Any

import pytest
from admin_api import AdminApi

PRICE = {"input": "0.4", "cached_input": "0.10", "output": "1.600"}
BODY: dict[str, Any] = {
    "name": "acme-ai",
    "url": "https://ai.example",
    "api_key": "provider-secret",
    "models": {"m": {"name": "big-m", "price": PRICE}},
}
SHOWN: dict[str, Any] = {
    "name": "acme-ai",
    "url": "https://ai.example/v1",
    "models": {
        "m": {
            "name": "big-m",
            "price": {"input": "0.40", "cached_input": "0.10", "output": "1.60"},
        }
    },
    "rank": 0,
    "enabled": True,
    "connect_timeout_ms": 5_000,
    "first_event_timeout_ms": 60_000,
    "stall_timeout_ms": 60_000,
    "output_limit_field": "max_tokens",
    "extensions": [],
    "has_api_key": True,
}


async def test_a_provider_is_registered_replaced_and_removed(api: AdminApi) -> None:
    """201 with what is stored; the whole is replaced but for the key, which is never shown."""
    answer = await api.call("POST", "/hosted", BODY)
    assert (answer.status_code, answer.json()) == (201, SHOWN)
    assert await api.json("GET", "/hosted/acme-ai") == SHOWN
    changes = {
        "name": "acme-ai",
        "url": "https://ai.example/openai/v1/",
        "models": {"m": {"name": "m", "price": None}},
        "rank": 2,
        "enabled": False,
        "stall_timeout_ms": 1_000,
        "output_limit_field": "max_completion_tokens",
        "extensions": ["top_k", "min_p"],
    }
    assert await api.json("POST", "/hosted", changes) == {
        **SHOWN,
        **changes,
        "url": "https://ai.example/openai/v1",
        "extensions": ["min_p", "top_k"],
    }
    assert (await api.json("POST", "/hosted", {**changes, "api_key": None}))["has_api_key"] is False
    texts = [(await api.call("GET", path)).text for path in ("/hosted", "/audit")]
    assert "provider-secret" not in answer.text + "".join(texts)
    assert (await api.call("DELETE", "/hosted/acme-ai")).status_code == 204
    assert (await api.call("GET", "/hosted/acme-ai")).status_code == 404
    assert (await api.call("DELETE", "/hosted/acme-ai")).status_code == 404
    audit = await api.json("GET", "/audit?subject_kind=hosted")
    assert [(entry["action"], entry["actor"]) for entry in audit["items"]] == [
        ("hosted.remove", "user:admin@weir.local"),
        *[("hosted.register", "user:admin@weir.local")] * 3,
    ]
    assert audit["items"][3]["before"] is None
    assert audit["items"][3]["after"] == SHOWN
    assert audit["items"][0]["after"] is None


async def test_providers_are_paged_by_name(api: AdminApi) -> None:
    """Each once."""
    for name in ("c", "a", "b"):
        await api.json("POST", "/hosted", {**BODY, "name": name})
    first = await api.json("GET", "/hosted?limit=2")
    rest = await api.json("GET", f"/hosted?limit=2&cursor={first['next_cursor']}")
    assert [each["name"] for each in first["items"] + rest["items"]] == ["a", "b", "c"]
    assert rest["next_cursor"] is None


def priced(**prices: object) -> dict[str, Any]:
    """A body whose one model costs this."""
    return {"models": {"m": {"name": "x", "price": {"input": "1", "output": "1", **prices}}}}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"name": "Acme AI"}, "name"),
    ({"name": 5}, "name"),
    ({"url": "ai.example"}, "url"),
    ({"url": "https://ai.example/v1?x=1"}, "url"),
    ({"url": "https://u:p@ai.example/v1"}, "url"),
    ({"models": {}}, "models"),
    ({"models": []}, "models"),
    ({"models": {"gpt-5": {"name": "x"}}}, "models.gpt-5"),
    ({"models": {"m": "x"}}, "models.m"),
    ({"models": {"m": {"name": ""}}}, "models.m.name"),
    ({"models": {"m": {}}}, "models.m.name"),
    ({"models": {"m": {"name": "x", "cost": 5}}}, "models.m.cost"),
    (priced(input=0.4), "models.m.price.input"),
    (priced(input="4e-1"), "models.m.price.input"),
    (priced(output="-1"), "models.m.price.output"),
    (priced(cached_input="0.0000001"), "models.m.price.cached_input"),
    (priced(input="9007199254.740992"), "models.m.price.input"),
    (priced(reasoning="1"), "models.m.price.reasoning"),
    ({"models": {"m": {"name": "x", "price": {"input": "1"}}}}, "models.m.price.output"),
    ({"api_key": "a\nb"}, "api_key"),
    ({"api_key": 5}, "api_key"),
    ({"rank": "first"}, "rank"),
    ({"enabled": "yes"}, "enabled"),
    ({"connect_timeout_ms": 0}, "connect_timeout_ms"),
    ({"first_event_timeout_ms": 10**9}, "first_event_timeout_ms"),
    ({"stall_timeout_ms": 1.5}, "stall_timeout_ms"),
    ({"output_limit_field": "max_new_tokens"}, "output_limit_field"),
    ({"extensions": ["cache_salt"]}, "extensions"),
    ({"extensions": "top_k"}, "extensions"),
    ({"has_api_key": True}, "has_api_key"),
    ({"headers": {"x": "y"}}, "headers"),
]


@pytest.fixture
async def stored(api: AdminApi) -> AdminApi:
    """The API, with the provider that a refusal must leave."""
    await api.json("POST", "/hosted", BODY)
    return api


async def test_what_cannot_be_a_provider_is_422(stored: AdminApi) -> None:
    """Each refusal names its field, shows no key, and leaves what is stored."""
    for changes, param in REFUSED:
        refused = await stored.call("POST", "/hosted", {**BODY, **changes})
        assert refused.status_code == 422, changes
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["param"] == param, changes
        assert "secret" not in refused.text
    for name in ("name", "url", "models"):
        body = {field: value for field, value in BODY.items() if field != name}
        refused = await stored.call("POST", "/hosted", body)
        assert (refused.status_code, refused.json()["param"]) == (422, name)
    assert await stored.json("GET", "/hosted/acme-ai") == SHOWN
