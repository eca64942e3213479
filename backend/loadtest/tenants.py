"""The workload's tenants and their keys, made through the admin API of a running Weir.

Every tenant of a workload becomes `loadtest-<tenant>` with one key of each class. The keys are
remembered in the data directory, where the other secrets of that installation lie, and used again
for as long as they are neither revoked nor gone.
"""

import asyncio
import hashlib
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from backend.embedded.data_dir import write_private
from backend.loadtest.plan import TrafficClass
from backend.loadtest.weir_system import WeirSystem

KEYS_FILE = "loadtest-keys.json"
CLASSES: tuple[TrafficClass, ...] = ("interactive", "batch")
PREFIX = "loadtest-"
ID_CHARACTERS_MAX = 63
IN_FORCE_WITHIN_S = 10.0
POLL_S = 0.05
ASK_TIMEOUT_S = 30.0
SHOWN_LIMITS = ("max_sequences", "tpm", "rpm")
"""What `/v1/limits` shows of a tenant's limits."""

Limits = Mapping[str, Any]
Keys = dict[str, dict[TrafficClass, str]]
"""Secrets by the workload's name of the tenant, and class."""


class TenantsNotMade(RuntimeError):
    """The admin API refused, could not be reached, or what it took did not come into force."""


class _Key(msgspec.Struct, frozen=True):
    id: str
    secret: str


class _Listed(msgspec.Struct, frozen=True):
    id: str
    revoked_at: str | None = None
    expires_at: str | None = None


class _Page(msgspec.Struct, frozen=True):
    items: list[_Listed]
    next_cursor: str | None = None


_Remembered = dict[str, dict[str, _Key]]


def tenant_id_of(name: str) -> str:
    """The id in Weir of a workload's tenant: of two names, two ids."""
    wanted = PREFIX + name
    kept = re.sub(r"[^a-z0-9_-]", "-", wanted.lower())
    if kept == wanted and len(kept) <= ID_CHARACTERS_MAX:
        return wanted
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{kept[: ID_CHARACTERS_MAX - 9]}-{digest}"


async def ensure_tenants(
    system: WeirSystem, names: Iterable[str], *, limits: Limits | None, data_dir: Path
) -> Keys:
    """Make what is missing of the tenants and keys, set the tenants' limits (None: no limits), and
    return once every gateway has them. Raises TenantsNotMade."""
    path = data_dir / KEYS_FILE
    remembered = _remembered(path)
    body = {} if limits is None else dict(limits)
    headers = {"authorization": f"Bearer {system.admin_token}"}
    timeout = aiohttp.ClientTimeout(total=ASK_TIMEOUT_S)
    keys: Keys = {}
    try:
        async with aiohttp.ClientSession(
            system.gateways[0], headers=headers, timeout=timeout
        ) as session:
            admin = _Admin(session)
            for name in sorted(set(names)):
                tenant_id = tenant_id_of(name)
                await admin.tenant(tenant_id, body)
                before = remembered.get(tenant_id, {})
                remembered[tenant_id] = await admin.keys(tenant_id, before)
                keys[name] = {each: remembered[tenant_id][each].secret for each in CLASSES}
    except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError) as error:
        raise TenantsNotMade(f"the admin API at {system.gateways[0]} failed: {error}") from error
    finally:
        # Also what was made before a failure: a secret is shown once.
        write_private(path, msgspec.json.encode(remembered))
    await _in_force(system.gateways, keys, body)
    return keys


def _remembered(path: Path) -> _Remembered:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Remembered)
    except (FileNotFoundError, msgspec.DecodeError):
        return {}


class _Admin:
    """The few verbs of the admin API that this needs."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def tenant(self, tenant_id: str, limits: Limits) -> None:
        """Make the tenant unless it is there, and set its limits."""
        new = {"id": tenant_id, "name": tenant_id}
        await self._ask("POST", "/admin/v1/tenants", new, also=409)
        await self._ask("PUT", f"/admin/v1/tenants/{tenant_id}/limits", limits)

    async def keys(self, tenant_id: str, remembered: dict[str, _Key]) -> dict[str, _Key]:
        """A key of each class: the remembered one where it still works, else a new one."""
        working = await self._working(tenant_id) if remembered else set()
        found = {name: key for name, key in remembered.items() if key.id in working}
        for each in CLASSES:
            if each not in found:
                body = {"name": f"load test, {each}", "class": each}
                made = await self._ask("POST", f"/admin/v1/tenants/{tenant_id}/keys", body)
                found[each] = msgspec.json.decode(made, type=_Key)
        return found

    async def _working(self, tenant_id: str) -> set[str]:
        path = f"/admin/v1/tenants/{tenant_id}/keys"
        page = msgspec.json.decode(await self._ask("GET", path), type=_Page)
        items = list(page.items)
        while page.next_cursor is not None:
            answer = await self._ask("GET", f"{path}?cursor={page.next_cursor}")
            page = msgspec.json.decode(answer, type=_Page)
            items += page.items
        return {key.id for key in items if key.revoked_at is None and key.expires_at is None}

    async def _ask(
        self, method: str, path: str, body: Limits | None = None, *, also: int | None = None
    ) -> bytes:
        """The answer's body. Raises TenantsNotMade for one that is neither 2xx nor `also`."""
        async with self._session.request(method, path, json=body) as answer:
            content = await answer.read()
            if answer.status // 100 != 2 and answer.status != also:
                raise TenantsNotMade(f"{method} {path} gave {answer.status}: {_detail(content)}")
            return content


def _detail(problem: bytes) -> str:
    try:
        return str(msgspec.json.decode(problem, type=dict[str, Any]).get("detail", ""))
    except msgspec.DecodeError:
        return "no explanation"


async def _in_force(gateways: list[str], keys: Keys, limits: Limits) -> None:
    """Return once each gateway knows each key and shows its tenant's limits."""
    deadline = time.monotonic() + IN_FORCE_WITHIN_S
    wanted = {name: limits.get(name) for name in SHOWN_LIMITS}
    timeout = aiohttp.ClientTimeout(total=ASK_TIMEOUT_S)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session:
            for gateway in gateways:
                for secret in (secret for each in keys.values() for secret in each.values()):
                    while not await _shows(session, gateway, secret, wanted):
                        if time.monotonic() > deadline:
                            raise TenantsNotMade(
                                f"{gateway} does not know the new keys and limits after "
                                f"{IN_FORCE_WITHIN_S:.0f} s"
                            )
                        await asyncio.sleep(POLL_S)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise TenantsNotMade(f"a gateway failed: {error}") from error


async def _shows(session: aiohttp.ClientSession, gateway: str, secret: str, wanted: Limits) -> bool:
    headers = {"authorization": f"Bearer {secret}"}
    async with session.get(f"{gateway}/v1/limits", headers=headers) as answer:
        if answer.status != 200:
            return False
        shown = (await answer.json())["tenant"]
        return all(shown.get(name) == value for name, value in wanted.items())
