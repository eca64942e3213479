"""Every error of the admin API is an RFC 9457 problem, and roles decide who may write."""

from itertools import product

import httpx
import pytest
from admin_api import AdminApi, client_of
from litestar import Litestar
from postgres_proxy import postgres_proxy
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.postgres import async_engine
from gateway.administration import Administration
from gateway.domain.account import Role
from gateway.http.admin import admin_router
from gateway.http.private_answers import PRIVATE_HEADERS
from gateway.http.problems import PROBLEM_HANDLERS

WRITES = [
    ("POST", "/tenants", {"id": "x", "name": "X"}),
    ("PATCH", "/tenants/acme", {"name": "X"}),
    ("PUT", "/tenants/acme/limits", {"tpm": 1}),
    ("POST", "/tenants/acme/keys", {"name": "k", "class": "batch"}),
    ("DELETE", "/keys/key_x", None),
    ("POST", "/keys/key_x/rotate", None),
    ("PUT", "/keys/key_x/limits", {}),
    ("POST", "/models", {"id": "x", "context_tokens": 10, "max_output_tokens": 10}),
    ("POST", "/workers", {"id": "x", "model": "m", "url": "http://h:1"}),
    ("DELETE", "/workers/w", None),
    ("POST", "/hosted", {"name": "x", "url": "http://h", "models": {"m": {"name": "m"}}}),
    ("DELETE", "/hosted/x", None),
    ("POST", "/users", {"email": "x@y.z", "role": "admin", "password": "x" * 12}),
    ("PATCH", "/users/user_x", {"role": "admin"}),
    ("POST", "/users/user_x/tokens", {"name": "t"}),
    ("DELETE", "/users/user_x/tokens/t", None),
]
READS = ["/tenants", "/tenants/acme", "/tenants/acme/limits", "/tenants/acme/keys", "/models"]
READS += ["/workers", "/workers/w", "/hosted", "/users", "/audit"]


def check_problem(answer: httpx.Response, status: int) -> dict[str, object]:
    """The answer is a problem of that status, complete and true to itself."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert PRIVATE_HEADERS.items() <= dict(answer.headers).items()
    problem: dict[str, object] = answer.json()
    assert problem["status"] == status
    assert problem["type"] == f"urn:weir:problem:{problem['code']}"
    assert problem["title"]
    assert problem["detail"]
    return problem


ERRORS: list[tuple[str, str, bytes | None, int]] = [
    ("POST", "/tenants", b"{", 400),
    ("POST", "/tenants", b"", 400),
    ("POST", "/tenants", b"\xff\xfe", 400),
    ("POST", "/tenants", b'{"id": "\xff"}', 400),
    ("PUT", "/tenants/acme/limits", b'{"models": ' + b"[" * 20_000 + b"]" * 20_000 + b"}", 400),
    ("PUT", "/tenants/acme/limits", b"[" * 20_000, 400),
    ("POST", "/tenants", b"[]", 422),
    ("POST", "/tenants", b'{"id": "x"}', 422),
    ("POST", "/tenants", b'{"id": "x", "name": "X", "colour": "red"}', 422),
    ("POST", "/tenants", b'{"id": "x", "name": "a\\u0000b"}', 422),
    (
        "POST",
        "/tenants",
        b'{"id": "x", "name": "X", "billing_profile": {"tax_id": "\\u0000"}}',
        422,
    ),
    ("POST", "/tenants", b'{"id": "acme", "name": "X"}', 409),
    (
        "POST",
        "/tenants/acme/keys",
        b'{"name": "k", "class": "batch", "expires_at": "soon"}',
        422,
    ),
    (
        "POST",
        "/tenants/acme/keys",
        b'{"name": "k", "class": "batch", "expires_at": "2100-01-01T00:00:00"}',
        422,
    ),
    (
        "POST",
        "/tenants/acme/keys",
        b'{"name": "k", "class": "batch", "expires_at": "2001-01-01T00:00:00Z"}',
        422,
    ),
    ("POST", "/tenants", b'"' + b"x" * 2_000_000 + b'"', 413),
    ("GET", "/tenants/nobody", None, 404),
    ("GET", "/keys/%00", None, 422),
    ("GET", "/keys/%ff", None, 404),
    ("GET", "/nothing", None, 404),
    ("DELETE", "/tenants", None, 405),
    ("GET", "/tenants?limit=0", None, 422),
    ("GET", "/tenants?limit=many", None, 422),
    ("GET", "/tenants?cursor=%25", None, 422),
    ("GET", "/tenants?cursor=AA", None, 422),
]


async def test_every_error_is_a_problem(
    api: AdminApi,
) -> None:
    """Bad JSON is 400, a bad value 422, and so on, each with the media type of a problem."""
    for method, path, raw, status in ERRORS:
        check_problem(await api.call(method, path, raw=raw), status)


@pytest.mark.parametrize(
    "path",
    [
        "/admin/v1/tenants",
        "/admin/v1/session",
        "/admin/v1/audit",
        "/admin/v1/audit.csv",
        "/billing/v1/prices",
    ],
)
async def test_no_answer_is_kept_by_anybody(api: AdminApi, path: str) -> None:
    """Neither by a browser nor by a cache on the way, of a file as of a list."""
    answer = await api.call("GET", path, below="")
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "private, no-store"
    assert answer.headers["vary"] == "authorization, cookie"
    assert answer.headers["x-content-type-options"] == "nosniff"


BAD_CREDENTIALS = [b"", b"Bearer", b"Bearer nobody", b"Basic YTpi", b"Bearer \xff\xfe"]


async def test_without_a_valid_token_nothing_is_told(
    api: AdminApi,
) -> None:
    """401 before anything else is looked at: the body, the path's subject, the role."""
    requests = (("GET", "/tenants"), ("POST", "/tenants"), ("DELETE", "/keys/nothing"))
    for credentials, (method, path) in product(BAD_CREDENTIALS, requests):
        headers = httpx.Headers([(b"authorization", credentials)] if credentials else [])
        answer = await api.call(method, path, raw=b"{", headers=headers)
        check_problem(answer, 401)
        assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_only_admins_write(api: AdminApi) -> None:
    """Every other role reads all and is forbidden every write, but operators drain workers."""
    for role in (Role.FINANCE, Role.OPERATOR, Role.VIEWER):
        for method, path, body in WRITES:
            check_problem(await api.call(method, path, body, role=role), 403)
        for path in READS:
            assert (await api.call("GET", path, role=role)).status_code == 200
        drained = await api.call("POST", "/workers/w/drain", role=role)
        assert drained.status_code == (200 if role is Role.OPERATOR else 403)


async def test_postgres_away_is_503(database_url: str) -> None:
    """With a time to wait, for reads, writes and the token's own check."""
    async with postgres_proxy(database_url) as proxy:
        engine = async_engine(proxy.url)
        app = Litestar([admin_router(Administration(engine))], exception_handlers=PROBLEM_HANDLERS)
        await proxy.refuse()
        async with client_of(app) as client:
            answer = await client.put(
                "/admin/v1/tenants/acme/limits",
                content=b"{}",
                headers={"authorization": "Bearer some-token"},
            )
        check_problem(answer, 503)
        assert answer.headers["retry-after"] == "1"
        await engine.dispose()


async def test_a_bug_is_a_500_that_tells_nothing(
    api: AdminApi,
    engine: AsyncEngine,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The client learns nothing of it; the log has the traceback."""

    async def broken(_tenant_id: str) -> None:
        raise RuntimeError("inner workings")

    monkeypatch.setattr(api.administration, "get_tenant", broken)
    answer = await api.call("GET", "/tenants/acme")
    problem = check_problem(answer, 500)
    assert "inner" not in str(problem)
    assert "inner workings" in caplog.text
