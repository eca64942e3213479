"""INV-12: what is another tenant's is to a tenant's people what does not exist, to the byte."""

import re

import httpx
import pytest
from roles_table import API_ROWS, Row
from roles_world import ABSENT, RolesWorld

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOTHING = {
    "type": "urn:weir:problem:not_found",
    "title": "Not Found",
    "status": 404,
    "detail": "there is nothing of that name",
    "code": "not_found",
}


def whole(answer: httpx.Response) -> tuple[int, dict[str, str], bytes]:
    """All that a client sees of an answer."""
    return answer.status_code, dict(answer.headers), answer.content


def rows_of_subjects() -> list[Row]:
    """Each row in which the other tenant's admin is told that there is nothing."""
    return [row for row in API_ROWS if row.expected["other_admin"] == "404"]


async def test_anothers_is_what_does_not_exist(world: RolesWorld) -> None:
    """INV-12: status, headers and body are the same for what another tenant has, for what nobody
    has and for names that are none, with every ending of a document, of reading and of writing."""
    rows = rows_of_subjects()
    assert {"GET", "POST", "PUT", "DELETE"} <= {row.method for row in rows}
    assert any(row.path.endswith("/limits") for row in rows)
    assert any(row.path.endswith(".pdf") for row in rows)
    answers = set()
    for row in rows:
        for headers, subjects in (
            (world.bearer("other_admin"), None),
            (world.bearer("other_admin"), ABSENT),
            (world.bearer("other_admin"), dict.fromkeys(ABSENT, "no-name-at%20all")),
            (world.bearer("tenant_admin"), ABSENT),
        ):
            answer = await world.ask(row, headers=headers, subjects=subjects)
            assert answer.json() == NOTHING, (row.method, row.path, answer.text)
            status, others, content = whole(answer)
            answers.add((status, tuple(sorted(others.items())), content))
    assert len(answers) == 1


async def test_what_was_refused_has_changed_nothing(world: RolesWorld) -> None:
    """INV-12: a key that another tenant's admin tried to revoke, rotate and limit is as it was."""
    key_id = await world.key("acme")
    before = (await world.administration.list_keys("acme")).items
    subjects = {**ABSENT, "tenant_id": "acme", "key_id": key_id}
    tried = 0
    for row in rows_of_subjects():
        if row.method != "GET":
            tried += 1
            answer = await world.ask(row, headers=world.bearer("other_admin"), subjects=subjects)
            assert answer.status_code == 404
    assert tried == 4
    assert key_id in [key.id for key in before]
    assert (await world.administration.list_keys("acme")).items == before


async def test_lists_have_the_tenants_own_and_nothing_else(world: RolesWorld) -> None:
    """INV-12: each list that a tenant's people may ask for, whole or with their own name."""
    listed = 0
    for row in API_ROWS:
        if row.method != "GET" or row.expected["other_admin"] != "ok" or "/v1/org" in row.path:
            continue
        acmes = (await world.ask(row, headers=world.bearer("tenant_admin"))).text
        globexs = (await world.ask(row, headers=world.bearer("other_admin"))).text
        if not re.search(r"/(invoices|credit-notes|requests|usage)$", row.path):
            continue
        listed += 1
        for text, own, other in (
            (acmes, world.subjects, world.others),
            (globexs, world.others, world.subjects),
        ):
            assert f'"{other["tenant_id"]}"' not in text
            for kind in ("invoice_id", "credit_note_id", "request_id", "draft"):
                assert other.get(kind, "none") not in text
            assert own["tenant_id"] in text or row.path.endswith("/usage")
    assert listed == 4


async def test_of_usage_a_tenant_chooses_no_other_tenant(world: RolesWorld) -> None:
    """INV-12: neither by group: who it is sold by, and whose it is, are no groups of theirs."""
    for group, status in (("tenant", 422), ("provider", 422), ("key", 200), ("model", 200)):
        answer = await world.client.get(
            f"/billing/v1/usage?since=2026-01-01T00:00:00Z&until=2026-12-01T00:00:00Z"
            f"&group_by={group}",
            headers=world.bearer("tenant_member"),
        )
        assert answer.status_code == status, answer.text


async def test_of_an_organization_another_is_not_told_from_none(world: RolesWorld) -> None:
    """INV-12: 403 in the same words, whether there is such a tenant or not."""
    for path in ("usage/completions", "costs"):
        answers = {
            (answer.status_code, answer.content)
            for project in ("acme", "nobody")
            for answer in [
                await world.client.get(
                    f"/v1/organization/{path}?start_time=1767225600&project_ids={project}",
                    headers=world.bearer("other_admin"),
                )
            ]
        }
        assert [status for status, _ in answers] == [403]
