"""INV-12 in the console: an admin of `globex` tries every page and form of a tenant's own people
with what is `acme`'s."""

import re

import httpx
import pytest
from roles_table import Row
from roles_table_console import CONSOLE_ROWS
from roles_world import ABSENT, RolesWorld

pytestmark = pytest.mark.asyncio(loop_scope="module")

BACK = re.compile(r'name="back" value="[^"]*"')
"""Where the form of the theme says which page it stands on."""
THEIRS = "other_admin"
NO_NAMES = dict.fromkeys(ABSENT, "no-name-at%20all")
PLACES = ("/console/own", "/console/requests")


def rows_of_subjects() -> list[Row]:
    """Each row in which the other tenant's admin is told that there is nothing."""
    return [
        row for row in CONSOLE_ROWS if row.expected[THEIRS] == "404" and row.path.startswith(PLACES)
    ]


def own_pages() -> list[Row]:
    """Each page that shows a tenant's people their own, and takes no name of anything."""
    return [
        row
        for row in CONSOLE_ROWS
        if row.method == "GET"
        and row.expected[THEIRS] == "ok"
        and row.expected["admin"] in ("403", "ok")
        and row.path.startswith(PLACES)
    ]


def whole(answer: httpx.Response) -> tuple[int, tuple[tuple[str, str], ...], str]:
    """All that a browser is told, but for the address that it asked for itself."""
    headers = {name: value for name, value in answer.headers.items() if name != "content-length"}
    return answer.status_code, tuple(sorted(headers.items())), BACK.sub("", answer.text)


async def test_anothers_page_is_one_that_does_not_exist(world: RolesWorld) -> None:
    """INV-12: status, headers and page are the same for what `acme` has, for what nobody has and
    for names that are none: of keys, their limits, invoices, credit notes, files and requests."""
    rows = rows_of_subjects()
    paths = {row.path for row in rows}
    assert {"GET", "POST"} <= {row.method for row in rows}
    for part in (
        "/keys/",
        "/limits",
        "/invoices/",
        "/credit-notes/",
        ".pdf",
        "/requests/",
        "?tenant",
    ):
        assert any(part in path for path in paths), part
    key_id = await world.key("acme")
    for row in rows:
        answers = set()
        for subjects in ({**world.subjects, "key_id": key_id}, ABSENT, NO_NAMES):
            if subjects is NO_NAMES and row.path.startswith("/console/requests"):
                continue  # it says of such a text that it is no request's id
            answer = await world.ask(row, headers=world.in_session(THEIRS), subjects=subjects)
            assert answer.status_code == 404, (row.method, row.path)
            status, headers, text = whole(answer)
            answers.add((status, headers, text.replace(subjects["request_id"], "TYPED")))
        assert len(answers) == 1, (row.method, row.path, answers)


async def test_forms_that_were_refused_have_changed_nothing(world: RolesWorld) -> None:
    """INV-12: a key that they tried to replace, revoke and limit is as it was, and theirs alone."""
    key_id = await world.key("acme")
    before = await world.administration.get_key(key_id)
    count = len((await world.administration.list_keys("acme")).items)
    tried = 0
    for row in rows_of_subjects():
        if row.method == "POST":
            tried += 1
            body = {**(row.body or {}), "tpm": "7", "version": str(before.limits_version)}
            form = Row(row.method, row.path, row.cells, row.ok, body)
            subjects = {**ABSENT, "key_id": key_id}
            answer = await world.ask(form, headers=world.in_session(THEIRS), subjects=subjects)
            assert answer.status_code == 404, (row.path, answer.status_code)
    assert tried == 4
    assert await world.administration.get_key(key_id) == before
    assert len((await world.administration.list_keys("acme")).items) == count


async def test_no_parameter_opens_anything_of_another(world: RolesWorld) -> None:
    """INV-12: whatever of `acme`'s stands after the question mark, the answer is the one for a name
    of the same kind that nobody has; but for the name itself, which the form shows as it was
    typed."""
    key_id = await world.key("acme")
    kinds = ("tenant_id", "request_id", "invoice_id")
    mine = {kind: world.subjects[kind] for kind in kinds} | {"key_id": key_id}
    parameters = {"id": "request_id", "cursor": "request_id"} | {kind: kind for kind in mine}
    pages = own_pages()
    assert len(pages) >= 10
    for row in pages:
        path = row.path.partition("?")[0]
        for name, kind in parameters.items():
            seen = set()
            for typed in (mine[kind], ABSENT[kind]):
                answer = await world.client.get(
                    f"{path}?{name}={typed}", headers=world.in_session(THEIRS)
                )
                assert answer.status_code in (200, 303, 404, 422), (path, name)
                text = answer.text.replace(typed, "TYPED")
                assert not foreign(world, text, typed), (path, name)
                seen.add((answer.status_code, NOW.sub("", text)))
            assert len({status for status, _ in seen}) == 1, (path, name)
            if name != "cursor":
                assert len(seen) == 1, (path, name, seen)


NOW = re.compile(r"<time.*?</time>|\d+ (?:s|min) ago|name=\"once\" value=\"[^\"]*\"")
"""What differs between two answers to the same: the time, and what a form is good for once by."""


def foreign(world: RolesWorld, text: str, typed: str) -> list[str]:
    """What of `acme`'s, or of those who run the gateway, a page shows."""
    names = [
        value for kind, value in world.subjects.items() if kind not in ("tenant_id", "user_id")
    ]
    names += ["acme", "Acme", "acme@", "gw-1", "local-0"]
    return [name for name in names if name != typed and name in text]


async def test_pages_have_the_tenants_own_and_nothing_else(world: RolesWorld) -> None:
    """INV-12: each page, as both tenants' admins see it: the one's invoices, credit notes, keys and
    requests, and no name of the other's, of a worker or of a gateway; drafts are nowhere."""
    for row in own_pages():
        answer = await world.client.get(row.path, headers=world.in_session(THEIRS))
        assert not foreign(world, answer.text, ""), row.path
        acmes = await world.client.get(row.path, headers=world.in_session("tenant_admin"))
        for name in (*world.others.values(), "Globex", world.subjects["draft"], "local-0", "gw-1"):
            assert name not in acmes.text, (row.path, name)
    listed = await world.client.get("/console/own/invoices", headers=world.in_session(THEIRS))
    assert world.others["invoice_number"] in listed.text
    notes = await world.client.get("/console/own/credit-notes", headers=world.in_session(THEIRS))
    assert world.others["credit_note_number"] in notes.text
    requests = await world.client.get("/console/own/latest", headers=world.in_session(THEIRS))
    assert world.others["request_id"] in requests.text
