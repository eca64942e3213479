"""The audit log and bulk limits over HTTP."""

import csv
import io

import msgspec
import pytest
from admin_api import AdminApi

from gateway.domain.account import Role
from gateway.domain.audit_chain import NO_HASH
from gateway.domain.permissions import PERMISSIONS_OF, Permission

MAY_READ = [role for role in Role if Permission.AUDIT_READ in PERMISSIONS_OF[role]]


async def actions(api: AdminApi, query: str) -> list[str]:
    """What a filter finds."""
    page = await api.json("GET", f"/audit?limit=1000&{query}")
    return [entry["action"] for entry in page["items"]]


async def test_filters_narrow(api: AdminApi) -> None:
    """By what an action begins with, by whom it belongs to, by time."""
    key = await api.json("POST", "/tenants/acme/keys", {"name": "k", "class": "batch"})
    await api.json("PUT", f"/keys/{key['id']}/limits", {"tpm": 5})
    assert await actions(api, "action=key.*") == ["key.limits", "key.create"]
    assert await actions(api, "tenant_id=acme") == ["key.limits", "key.create", "tenant.create"]
    newest = (await api.json("GET", "/audit?limit=1"))["items"][0]
    assert await actions(api, "until=2020-01-01T00:00:00Z") == []
    assert len(await actions(api, "since=2020-01-01T00:00:00Z")) == newest["id"]
    assert await actions(api, f"change_id={newest['change_id']}") == ["key.limits"]


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("since=yesterday", "since"),
        ("until=2027-01-01T00:00:00", "until"),
        ("since=0001-01-01T00:00:00Z", "since"),
        ("action=k*y", "action"),
        ("action=*", "action"),
    ],
)
@pytest.mark.parametrize("path", ["/audit", "/audit.csv", "/audit.jsonl"])
async def test_a_filter_that_says_nothing_is_refused(
    api: AdminApi, path: str, query: str, param: str
) -> None:
    """422 with its name, before a file has begun."""
    answer = await api.call("GET", f"{path}?{query}")
    assert (answer.status_code, answer.json()["param"]) == (422, param)


@pytest.mark.parametrize("path", ["/audit", "/audit.csv", "/audit.jsonl"])
async def test_what_the_store_refuses_is_refused_before_a_file_has_begun(
    api: AdminApi, path: str
) -> None:
    """A NUL is nothing that Postgres compares with; a file that had begun would be cut off."""
    assert (await api.call("GET", f"{path}?actor=%00")).status_code == 422


async def test_files_hold_what_the_filters_find(api: AdminApi) -> None:
    """The oldest first, over several batches, with a name to be kept under."""
    for number in range(260):
        await api.administration.create_tenant("cli:many", f"t{number}", "T")
    answer = await api.call("GET", "/audit.csv?actor=cli:many")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="audit.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert [row["subject_id"] for row in rows] == [f"t{number}" for number in range(260)]
    answer = await api.call("GET", "/audit.jsonl?actor=cli:many&action=tenant.*")
    lines = [msgspec.json.decode(line) for line in answer.content.splitlines()]
    assert [line["id"] for line in lines] == [int(row["id"]) for row in rows]
    assert lines[0]["after"]["name"] == "T"
    empty = await api.call("GET", "/audit.jsonl?actor=nobody")
    assert (empty.status_code, empty.content) == (200, b"")


@pytest.mark.parametrize("role", MAY_READ)
async def test_money_is_withheld_from_who_may_not_read_it(api: AdminApi, role: Role) -> None:
    """That a price was set is seen by everyone, what it is by those who may."""
    body = {"model": "m", "input": "0.20", "output": "0.80"}
    await api.call("POST", "/prices", body, below="/billing/v1")
    told = Permission.MONEY_READ in PERMISSIONS_OF[role]
    listed = (await api.call("GET", "/audit?action=price.set", role=role)).json()["items"][0]
    assert listed["withheld"] is not told
    assert ("0.20" in str(listed["after"])) is told
    for ending in ("csv", "jsonl"):
        file = (await api.call("GET", f"/audit.{ending}?action=price.set", role=role)).text
        assert "price.set" in file
        assert ("0.20" in file) is told


@pytest.mark.parametrize("role", MAY_READ)
async def test_whose_prices_a_tenant_pays_is_withheld_too(api: AdminApi, role: Role) -> None:
    """A plan's name is in no entry for who may not read prices; what else a tenant is, is."""
    priced = {"model": "m", "plan": "gold", "input": "0.20", "output": "0.80"}
    await api.call("POST", "/prices", priced, below="/billing/v1")
    await api.administration.set_plan("cli:test", "acme", "gold")
    told = Permission.MONEY_READ in PERMISSIONS_OF[role]
    listed = (await api.call("GET", "/audit?action=tenant.plan", role=role)).json()["items"][0]
    assert (listed["subject_id"], listed["withheld"]) == ("acme", not told)
    assert ("gold" in str(listed["after"])) is told
    for ending in ("csv", "jsonl"):
        file = (await api.call("GET", f"/audit.{ending}?action=tenant.*", role=role)).text
        assert "tenant.plan" in file
        assert "Europe" in file or "UTC" in file
        assert ("gold" in file) is told


async def test_the_chain_is_checked(api: AdminApi) -> None:
    """With its head, and against one that was written down."""
    found = await api.json("GET", "/audit/verify")
    assert (found["fits"], found["misfit"], found["next_id"]) == (True, None, None)
    head = found["head"]
    assert head["id"] == found["checked"]
    listed = await api.json("GET", "/audit?limit=1")
    assert listed["items"][0]["hash"] == head["hash"]
    again = await api.json("GET", f"/audit/verify?from_id=2&expect={head['id']}:{head['hash']}")
    assert (again["fits"], again["checked"]) == (True, found["checked"] - 1)
    other = await api.json("GET", f"/audit/verify?expect={head['id']}:{NO_HASH}")
    assert (other["fits"], other["misfit"]["id"]) == (False, head["id"])
    for query, status in (("expect=1", 422), ("from_id=999", 422), ("from_id=-1", 422)):
        assert (await api.call("GET", f"/audit/verify?{query}")).status_code == status


async def test_b11_many_limits_in_one_request(api: AdminApi) -> None:
    """B11: one entry for each tenant, by who asked, under one change."""
    await api.json("POST", "/tenants", {"id": "globex", "name": "G"})
    changes = [
        {"tenant_id": "acme", "limits": {"tpm": 5}},
        {"tenant_id": "globex", "limits": {"max_sequences": 2}},
    ]
    answer = await api.json("PUT", "/limits", {"changes": changes})
    shown = [(item["tenant_id"], item["changed"]) for item in answer["items"]]
    assert shown == [("acme", True), ("globex", True)]
    assert answer["items"][1]["limits"]["max_sequences"] == 2
    page = await api.json("GET", f"/audit?change_id={answer['change_id']}")
    assert [(e["subject_id"], e["actor"]) for e in page["items"]] == [
        ("globex", "user:admin@weir.local"),
        ("acme", "user:admin@weir.local"),
    ]
    again = await api.json("PUT", "/limits", {"changes": changes})
    assert again["change_id"] is None
    changes[1]["limits"] = {"tpm": "many"}
    refused = await api.call("PUT", "/limits", {"changes": changes})
    assert refused.status_code == 422
    assert refused.json()["param"] == "changes[1].limits.tpm"
    assert (await api.call("PUT", "/limits", {"changes": []}, role=Role.VIEWER)).status_code == 403


async def test_b11_limits_that_somebody_changed_meanwhile_are_left(api: AdminApi) -> None:
    """B11: all of them where one is of another version, which is named; none is asked for."""
    await api.json("POST", "/tenants", {"id": "globex", "name": "G"})
    seen = {
        name: (await api.json("GET", f"/tenants/{name}"))["limits_version"]
        for name in ("acme", "globex")
    }
    await api.json("PUT", "/tenants/globex/limits", {"rpm": 7})
    changes = [
        {"tenant_id": name, "limits": {"tpm": 5}, "if_version": version}
        for name, version in seen.items()
    ]
    refused = await api.call("PUT", "/limits", {"changes": changes})
    assert (refused.status_code, refused.json()["code"]) == (409, "limits_changed")
    assert "globex" in refused.json()["detail"]
    assert "acme" not in refused.json()["detail"]
    assert (await api.json("GET", "/tenants/acme/limits"))["tpm"] is None
    changes[1]["if_version"] = (await api.json("GET", "/tenants/globex"))["limits_version"]
    done = await api.json("PUT", "/limits", {"changes": changes})
    assert [item["changed"] for item in done["items"]] == [True, True]
    unseen = [{"tenant_id": "acme", "limits": {"tpm": 6}}]
    assert (await api.json("PUT", "/limits", {"changes": unseen}))["items"][0]["changed"]
