"""What every page has: headers, navigation by permission, errors in its own look, the theme."""

import re

import pytest
from console_visitor import OWN, Visitor

from gateway.administration import Administration
from gateway.console.figures import UNKNOWN
from gateway.console.price_import import IMPORT_BYTES_MAX
from gateway.console.router import FORM_BYTES_MAX
from gateway.domain.account import Role
from gateway.errors import StoreUnavailable
from gateway.http.form_fields import FIELDS_MAX, OPEN_BYTES_MAX, URL_ENCODED
from gateway.serving.live_view import LiveView

NAV = re.compile(r'<nav class="places".*?</nav>', re.DOTALL)
ADDRESS = re.compile(r'(?:src|href)="(/console/static/[^"]+)"')


def links(page: str) -> list[str]:
    """Where the navigation leads."""
    found = NAV.search(page)
    assert found is not None
    return re.findall(r'href="([^"]+)"', found[0])


@pytest.mark.parametrize("path", ["/console/workers", "/console/login", "/console/nope"])
async def test_pages_allow_nothing_inline_and_are_not_kept(visitor: Visitor, path: str) -> None:
    """Also those before the log-in and of errors."""
    if path != "/console/login":
        await visitor.log_in()
    answer = await visitor.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", answer.text)


async def test_styles_and_scripts_are_kept_for_good(visitor: Visitor) -> None:
    """Each that a page names is there; of another version it is served, but not kept."""
    page = await visitor.get("/console/login")
    addresses = ADDRESS.findall(page.text)
    assert len(addresses) >= 4
    for address in addresses:
        answer = await visitor.client.get(address)
        assert answer.status_code == 200, address
        assert "immutable" in answer.headers["cache-control"]
    version = addresses[0].split("/")[3]
    other = await visitor.client.get(addresses[0].replace(version, "0" * 16))
    assert (other.status_code, other.headers["cache-control"]) == (200, "no-store")
    for name in ("nope.css", "..%2Frouter.py", "%2e%2e"):
        assert (await visitor.client.get(f"/console/static/{version}/{name}")).status_code == 404


@pytest.mark.parametrize(
    ("role", "seen", "unseen"),
    [
        (
            Role.ADMIN,
            {"/console/live", "/console/users", "/console/money/prices"},
            {"/console/own"},
        ),
        (Role.VIEWER, {"/console/live", "/console/audit"}, {"/console/money/invoices"}),
        (Role.TENANT_ADMIN, {"/console/own", "/console/own/invoices"}, {"/console/live"}),
        (Role.TENANT_MEMBER, {"/console/own/keys"}, {"/console/own/invoices", "/console/tenants"}),
    ],
)
async def test_the_navigation_leads_only_where_one_may_go(
    visitor: Visitor, role: Role, seen: set[str], unseen: set[str]
) -> None:
    """And each place that it names opens; each that it hides is a page that says so."""
    await visitor.log_in(role, tenant_id="acme" if role.startswith("tenant") else None)
    found = links(visitor.page)
    assert seen <= set(found)
    assert not unseen & set(found)
    for path in found:
        assert (await visitor.get(path)).status_code == 200, path
    for path in unseen:
        answer = await visitor.get(path)
        assert answer.status_code == 403
        assert "You may not see this" in answer.text
        assert links(answer.text) == found


async def test_no_page_is_a_page_too(visitor: Visitor) -> None:
    """With the way on for whoever is logged in; below the APIs an error stays a problem."""
    await visitor.log_in()
    answer = await visitor.get("/console/nope/at/all")
    assert answer.status_code == 404
    assert links(answer.text)
    answer = await visitor.get("/console/tenants/nobody/keys")
    assert answer.status_code == 404
    assert links(answer.text)
    answer = await visitor.get("/nope")
    assert answer.headers["content-type"].startswith("application/problem+json")


async def test_a_form_that_none_of_ours_sends_is_refused(visitor: Visitor) -> None:
    """422 in the console's look."""
    await visitor.log_in()
    answer = await visitor.post("/console/workers", {"id": "x" * 200_000})
    assert answer.status_code == 422
    assert "must be a text" in answer.text
    answer = await visitor.client.post(
        "/console/workers",
        content=f"csrf={visitor.csrf}&id=%ff",
        headers={**OWN, "content-type": URL_ENCODED},
    )
    assert answer.status_code == 422
    assert "not UTF-8" in answer.text


@pytest.mark.parametrize(
    ("path", "bytes_max"),
    [
        ("/console/login", OPEN_BYTES_MAX),
        ("/console/theme", OPEN_BYTES_MAX),
        ("/console/workers", FORM_BYTES_MAX),
        ("/console/money/prices/import", IMPORT_BYTES_MAX),
        ("/console/money/prices/import/write", IMPORT_BYTES_MAX),
    ],
)
async def test_no_more_is_read_than_a_page_needs(
    visitor: Visitor, path: str, bytes_max: int
) -> None:
    """Least of whoever has not logged in; the rest is 413 in the console's look."""
    if bytes_max > OPEN_BYTES_MAX:
        await visitor.log_in()
    sizes = {}
    for size in (bytes_max, bytes_max + 1):
        body = f"csrf={visitor.csrf}&a=".ljust(size, "x")
        answer = await visitor.client.post(
            path, content=body, headers={**OWN, "content-type": URL_ENCODED}
        )
        sizes[size] = answer.status_code
    assert sizes[bytes_max] != 413
    assert sizes[bytes_max + 1] == 413
    assert "That was too large" in answer.text


async def test_too_many_fields_are_too_large(visitor: Visitor) -> None:
    """413, before who sends them is known and after."""
    body = b"a&" * FIELDS_MAX
    for path in ("/console/login", "/console/workers"):
        if path != "/console/login":
            await visitor.log_in()
        answer = await visitor.client.post(
            path, content=body, headers={**OWN, "content-type": URL_ENCODED}
        )
        assert answer.status_code == 413
        assert "That was too large" in answer.text


async def test_the_theme_is_in_the_page_that_the_server_draws(visitor: Visitor) -> None:
    """So that no other is seen first. The form leads back to its page, and never elsewhere."""
    for theme, back, to in (
        ("dark", "/console/login", "/console/login"),
        ("light", "//evil.test", "/console"),
        ('"><script>', "/console/workers", "/console/workers"),
    ):
        answer = await visitor.post("/console/theme", {"theme": theme, "back": back})
        assert answer.headers["location"] == to
        page = await visitor.get("/console/login")
        shown = theme if theme in ("dark", "light") else "system"
        assert f'data-theme="{shown}"' in page.text


async def test_workers_are_drained_and_put_back_and_it_is_said_once(visitor: Visitor) -> None:
    """The form leads back to the page; the sentence is gone on the next."""
    await visitor.log_in(Role.OPERATOR)
    await visitor.get("/console/workers")
    answer = await visitor.post("/console/workers/w/drain")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/workers")
    assert "w drains: it gets nothing new" in (await visitor.get("/console/workers")).text
    assert "w drains" not in (await visitor.get("/console/workers")).text
    assert (await visitor.administration.get_worker("w")).draining
    assert "Remove" not in visitor.page
    assert (await visitor.post("/console/workers/w/remove")).status_code == 403
    await visitor.post("/console/workers/w/resume")
    assert not (await visitor.administration.get_worker("w")).draining


async def test_what_is_wrong_stands_at_its_field_with_what_was_typed(visitor: Visitor) -> None:
    """And nothing is registered until it is right."""
    await visitor.log_in()
    await visitor.get("/console/workers/new")
    fields = {
        "id": "w2",
        "model": "m",
        "url": "http://127.0.0.1:2/v1",
        "kind": "sglang",
        "engine": "sglang",
        "class": "batch",
        "api_key": "engine-secret",
    }
    answer = await visitor.post("/console/workers", fields)
    assert answer.status_code == 422
    assert 'id="f-url-error"' in answer.text
    assert 'value="http://127.0.0.1:2/v1"' in answer.text
    assert 'aria-describedby="f-url-hint f-url-error" aria-invalid="true"' in answer.text
    assert "engine-secret" not in answer.text
    answer = await visitor.post("/console/workers", fields | {"url": "http://127.0.0.1:2"})
    assert answer.status_code == 303
    worker = await visitor.administration.get_worker("w2")
    assert (worker.request_class, worker.api_key) == ("batch", "engine-secret")


async def test_what_is_not_known_is_no_zero(visitor: Visitor) -> None:
    """Of a worker that nobody could reach."""
    await visitor.log_in()
    page = (await visitor.get("/console/workers")).text
    row = page[page.index('id="worker-w"') :]
    assert "unreachable" in row
    assert row.count(str(UNKNOWN)) >= 2


async def test_without_postgres_a_page_says_so(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503, nobody is logged out by it, and a live part keeps what it showed: it is sent the cause
    alone."""
    await visitor.log_in()

    async def away(*_: object) -> None:
        raise StoreUnavailable("Postgres cannot be reached; nothing was changed")

    monkeypatch.setattr(Administration, "caller_by_session", away)
    answer = await visitor.get("/console/workers")
    assert answer.status_code == 503
    assert "A store cannot be reached" in answer.text
    assert "set-cookie" not in answer.headers
    part = await visitor.get("/console/workers/now", **{"hx-request": "true"})
    assert (part.status_code, part.text) == (503, "Postgres cannot be reached")
    assert part.headers["content-type"].startswith("text/plain")
    assert (await visitor.get("/console/login")).status_code == 200


async def test_without_redis_workers_are_as_this_gateway_sees_them(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their figures are not known, and the page says why."""
    await visitor.log_in()

    async def away(_: object) -> None:
        raise StoreUnavailable("Redis cannot be reached")

    monkeypatch.setattr(LiveView, "look", away)
    for path in ("/console/workers", "/console/workers/now"):
        page = (await visitor.get(path)).text
        assert "Redis cannot be reached." in page
        row = page[page.index('id="worker-w"') :]
        row = row[: row.index("</tr>")]
        assert row.count(str(UNKNOWN)) == 3
        assert ">0<" not in row
