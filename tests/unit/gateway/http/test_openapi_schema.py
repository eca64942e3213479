"""The schemas of the document accept what the code accepts, and its answers."""

from typing import Any

import msgspec
import pytest
from fuzz.corpus import CHATS, COMPLETIONS, PRIVILEGED
from hosted_examples import a_provider
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from price_examples import a_price
from tenant_examples import a_key, a_tenant, a_worker

from gateway.administration.views import (
    audit_view,
    hosted_view,
    key_view,
    model_view,
    price_view,
    tenant_view,
    user_view,
    worker_view,
)
from gateway.domain.account import AuditEntry, Role, User
from gateway.domain.tenant import Limits, Model, TenantLimits
from gateway.errors import InvalidRequest
from gateway.http import admin_bodies
from gateway.http.openapi_answers import (
    AuditAnswer,
    HostedAnswer,
    KeyAnswer,
    ModelAnswer,
    NewKeyAnswer,
    PriceAnswer,
    TenantAnswer,
    UserAnswer,
    WorkerAnswer,
)
from gateway.http.openapi_schema import schemas_of
from gateway.wire.bodies import BODIES, Endpoint
from gateway.wire.request import read_request

Json = Any
TENANT = {"id": "t", "name": "T"}
KEY = {"name": "k", "class": "batch"}
WORKER = {"id": "w", "model": "m", "url": "http://10.0.0.1:1"}
PRICE = {"model": "m", "input": "0.40", "output": "1.60"}
USER = {"email": "a@b.c", "role": "viewer", "password": "long enough, no?"}


def _image(url: str) -> Json:
    return {"type": "image_url", "image_url": {"url": url}}


def accepts(kind: type, value: Json) -> bool:
    """Whether the documented schema of `kind` takes the value."""
    schemas, components = schemas_of([kind, TenantLimits])
    document = {**schemas[kind], "components": {"schemas": components}}
    return bool(Draft202012Validator(document).is_valid(value))


@pytest.mark.parametrize(
    ("kind", "value", "accepted"),
    [
        (admin_bodies.TenantBody, TENANT, True),
        (admin_bodies.TenantBody, {**TENANT, "limits": {"tpm": 5, "models": {}}}, True),
        (admin_bodies.TenantBody, {**TENANT, "billing_profile": {"address": ["a"]}}, True),
        (admin_bodies.TenantBody, {"id": "t"}, False),
        (admin_bodies.TenantBody, {**TENANT, "owner": "x"}, False),
        (admin_bodies.TenantChanges, {}, True),
        (admin_bodies.TenantChanges, {"suspended": None}, False),
        (admin_bodies.KeyBody, {**KEY, "expires_at": None, "models": ["m"]}, True),
        (admin_bodies.KeyBody, {**KEY, "class": "slow"}, False),
        (admin_bodies.KeyBody, {"name": "k", "request_class": "batch"}, False),
        (admin_bodies.PriceBody, PRICE, True),
        (admin_bodies.PriceBody, {**PRICE, "effective_from": None, "cached_input": "0"}, True),
        (admin_bodies.PriceBody, {**PRICE, "input": 0.4}, False),
        (admin_bodies.PriceBody, {**PRICE, "class": "batch", "tenant_id": "a"}, True),
        (admin_bodies.PriceBody, {**PRICE, "class": "slow"}, False),
        (admin_bodies.PriceBody, {"input": "0.40", "output": "1.60"}, False),
        (admin_bodies.PlanBody, {"tenant_id": "a", "plan": None}, True),
        (admin_bodies.PlanBody, {"tenant_id": "a"}, False),
        (admin_bodies.RotationBody, {}, True),
        (admin_bodies.RotationBody, {"grace_ms": "1"}, False),
        (admin_bodies.WorkerBody, {**WORKER, "api_key": None, "draining": True}, True),
        (admin_bodies.WorkerBody, {**WORKER, "kind": "vllm"}, False),
        (admin_bodies.UserBody, USER, True),
        (admin_bodies.UserBody, {**USER, "role": "root"}, False),
        (Limits, {"max_sequences": 0, "tpm": None, "models": {"m": {"rpm": 1}}}, True),
        (Limits, {"max_queued": None, "max_wait_ms": None}, True),
        (TenantLimits, {"max_queued": 0, "max_wait_ms": 0, "tpm": None}, True),
        (TenantLimits, {"max_queued": None}, False),
        (TenantLimits, {"max_wait_ms": None}, False),
        (Limits, {"tpm": -1}, False),
        (Limits, {"tpm": 2**53 + 1}, False),
        (Limits, {"models": {"m": {"weight": 1}}}, False),
    ],
)
def test_a_schema_takes_what_its_struct_takes(kind: type, value: Json, *, accepted: bool) -> None:
    """Both accept, or both refuse."""
    assert accepts(kind, value) is accepted
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        assert not accepted
    else:
        assert accepted


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_real_requests_are_as_documented(endpoint: Endpoint) -> None:
    """Every body of the fuzzer's corpus that is served, and none with a field that is not."""
    kind = BODIES[endpoint]
    for body in CHATS if endpoint == "chat" else COMPLETIONS:
        read_request(endpoint, msgspec.json.encode(body), {})
        assert accepts(kind, body), body
    for name, value in PRIVILEGED.items():
        spoilt = {**body, name: value}
        assert not accepts(kind, spoilt), name
        with pytest.raises(InvalidRequest):
            read_request(endpoint, msgspec.json.encode(spoilt), {})


@pytest.mark.parametrize(
    ("endpoint", "change"),
    [
        ("chat", {"messages": []}),
        ("chat", {"service_tier": "gold"}),
        ("chat", {"chat_template_kwargs": {"chat_template": "x"}}),
        ("chat", {"messages": [{"role": "user", "content": "a", "rid": "x"}]}),
        ("chat", {"messages": [{"role": "user", "content": [{"type": "refusal"}]}]}),
        ("chat", {"messages": [{"role": "user", "content": [{"type": "text", "rid": "x"}]}]}),
        ("chat", {"messages": [{"role": "user", "content": [_image("http://a")]}]}),
        ("chat", {"tools": [{"function": {"name": "f"}, "rid": "x"}]}),
        ("chat", {"tool_choice": "any"}),
        ("chat", {"response_format": {"type": "text", "rid": "x"}}),
        ("chat", {"response_format": {"type": "json_schema"}}),
        ("chat", {"stream": True, "stream_options": {"rid": "x"}}),
        ("chat", {"n": 0}),
        ("chat", {"prompt": "x"}),
        ("completions", {"prompt": ""}),
        ("completions", {"prompt": []}),
        ("completions", {"prompt": ["a", ""]}),
        ("completions", {"prompt": ["a"] * 129}),
        ("completions", {"max_completion_tokens": 5}),
    ],
)
def test_what_is_refused_is_documented_so(endpoint: Endpoint, change: dict[str, Any]) -> None:
    """Also what is checked beyond the types of the struct."""
    body = {**(CHATS if endpoint == "chat" else COMPLETIONS)[0], **change}
    assert not accepts(BODIES[endpoint], body)
    with pytest.raises(InvalidRequest):
        read_request(endpoint, msgspec.json.encode(body), {})


def test_what_the_admin_api_shows_is_as_documented() -> None:
    """Each view has exactly the documented fields."""
    user = User(id="u", email="a@b.c", role=Role.ADMIN, created_at_ms=1)
    entry = AuditEntry(
        id=1,
        at_ms=1,
        actor="a",
        action="b",
        subject_kind="c",
        subject_id="d",
        before=None,
        after={},
    )
    shown: list[tuple[Json, Any]] = [
        (tenant_view(a_tenant()), TenantAnswer),
        (key_view(a_key()), KeyAnswer),
        (key_view(a_key(), secret="s"), NewKeyAnswer),
        (model_view(Model(id="m", context_tokens=1, max_output_tokens=1)), ModelAnswer),
        (worker_view(a_worker("w")), WorkerAnswer),
        (user_view(user), UserAnswer),
        (hosted_view(a_provider()), HostedAnswer),
        (price_view(a_price()), PriceAnswer),
        (price_view(a_price(cached_input_pico=None)), PriceAnswer),
        (audit_view(entry), AuditAnswer),
    ]
    for view, answer in shown:
        msgspec.convert(view, answer)
