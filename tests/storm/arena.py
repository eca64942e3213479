"""The system under a storm: its tenants, what is done to it meanwhile, and its witnesses."""

import http.client
import os
import signal
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import redis
from storm.history import Change, InForce, Rest, Row, Scope, Span
from storm.tenants import (
    CURRENCY,
    PRICE,
    PRICE_PICO,
    Fields,
    Mix,
    in_pico,
    key_body,
    limits_body,
    pico_of,
)
from weir_dev import WeirDev

KINDS = ("max_sequences", "tpm", "rpm")
EVERYWHERE_WITHIN_S = 3.0
"""A change is promised to hold on every gateway within a second; three times that."""
WRITTEN_WITHIN_S = 10.0
SHIPPED_WITHIN_S = 20.0
BACK_WITHIN_S = 60.0
SETTLED_AGAIN_WITHIN_S = 5.0
LEASE_MS = 10_000
_ROWS = (
    "SELECT request_id, tenant_id, api_key_id, model, admitted_at, ended_at, outcome, "
    "prompt_tokens, output_tokens, sequences, usage_source, billable, cost_pico "
    "FROM usage_records WHERE tenant_id = ANY($1)"
)


@dataclass
class Arena:
    """One `weir dev`, with the tenants of a storm."""

    system: WeirDev
    mixes: Sequence[Mix]
    name: str
    ids: dict[str, str] = field(default_factory=dict)
    secrets: dict[tuple[str, int], str] = field(default_factory=dict)
    keys: dict[tuple[str, int], str] = field(default_factory=dict)
    kills: list[int] = field(default_factory=list)
    prices: dict[str, int] = field(default_factory=dict)
    """By tenant with a budget: pico-units a token."""
    has_budgets: bool = False
    _changes: dict[tuple[str, Scope], list[Change]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def prepare(self) -> None:
        """Tenants, keys and limits, in force on every gateway."""
        self.has_budgets = self._priced()
        for mix in self.mixes:
            tenant = self.ids[mix.name] = f"{self.name}-{mix.name}"
            currency = "USD" if mix.budget is None else CURRENCY
            self._done("/tenants", {"id": tenant, "name": mix.name, "currency": currency})
            for number, limits in enumerate(mix.key_limits):
                body = {"name": f"key {number}", "class": "interactive"}
                made = self._done(f"/tenants/{tenant}/keys", body)
                self.secrets[mix.name, number], key = made["secret"], made["id"]
                self.keys[mix.name, number] = key
                budget = mix.key_budget if number == 0 and self.has_budgets else None
                self._put(f"/keys/{key}/limits", key_body(limits, budget))
                self._note((tenant, f"key:{key}"), {**limits, **in_pico(budget)})
            self._put(f"/tenants/{tenant}/limits", self._body(mix))
            if mix.budget is not None and self.has_budgets:
                self.prices[tenant] = PRICE_PICO
                self._note((tenant, "tenant"), in_pico(mix.budget))
            self._note((tenant, "tenant"), mix.limits)
            self._note((tenant, f"model:{self.system.model}"), mix.model_limits)
            self._everywhere(mix, mix.limits)

    def edit(self) -> None:
        """Lower and raise limits while requests run under them."""
        for mix in self.mixes:
            if mix.edits is None:
                continue
            sent_ms = _now_ms()
            self._put(f"/tenants/{self.ids[mix.name]}/limits", self._body(mix, mix.edits))
            self._everywhere(mix, {**mix.limits, **mix.edits})
            self._note((self.ids[mix.name], "tenant"), mix.edits, sent_ms)

    def kill(self, gateway: int) -> None:
        """`kill -9` of a gateway, which is started again at its old address."""
        os.kill(self.system.ready["pids"]["gateways"][gateway], signal.SIGKILL)
        self.kills.append(_now_ms())

    def limits(self, kind: str) -> dict[Scope, InForce]:
        """All limits of a kind that were ever set, by scope."""
        return {
            scope: InForce(tuple(changes))
            for (which, scope), changes in self._changes.items()
            if which == kind
        }

    def held(self) -> list[str]:
        """What holds something now: in the store, by the gateways' account, in an engine."""
        left = []
        with redis.Redis.from_url(self.system.ready["redis_url"]) as store:
            for tenant in self.ids.values():
                leases = store.zrangebyscore(f"weir:{{{tenant}}}:due", 0, 10**15 - 1)
                if leases:
                    left.append(f"{tenant} leases: {len(leases)}")
        answer = self.system.admin("GET", "/admin/v1/live")
        if answer.status != 200:
            # A machine too busy to answer is asked again; it says nothing of what is held.
            return [*left, f"live: {answer.status}"]
        live = answer.json
        left += [
            f"live {tenant['id']}: {tenant['sequences_running']}"
            for tenant in live["tenants"]
            if tenant["id"] in self.ids.values() and tenant["sequences_running"]
        ]
        if running := self.system.running():
            left.append(f"engines: {running}")
        return left

    def rest(self, last_answer_ms: int) -> Rest:
        """Wait until nothing is held, for one lease time from the last answer on."""
        while (left := self.held()) and _now_ms() <= last_answer_ms + LEASE_MS:
            time.sleep(0.05)
        return Rest(None if left else _now_ms() - last_answer_ms, tuple(left))

    def all_back(self) -> None:
        """Wait until every gateway serves: a killed one records and settles what it had left."""
        deadline = time.monotonic() + BACK_WITHIN_S
        for index in range(len(self.system.ready["gateways"])):
            while True:
                with suppress(OSError, http.client.HTTPException):
                    url = self.system.gateway(index) + "/readyz"
                    if self.system.request("GET", url).status == 200:
                        break
                assert time.monotonic() < deadline, f"gateway {index} does not serve again"
                time.sleep(0.05)

    def counted(self, rest: Rest, rows: Sequence[Row], *, with_windows: bool) -> Rest:
        """What the store counts in the end, once it agrees with the records or is overdue."""
        deadline = time.monotonic() + SETTLED_AGAIN_WITHIN_S
        owed = {
            tenant: sum(row.cost_pico or 0 for row in rows if row.tenant == tenant)
            for tenant in self.prices
        }
        while True:
            views = {self.ids[m.name]: self._limits_of(m, gateway=0) for m in self.mixes}
            if not all("tenant" in view for view in views.values()):
                assert time.monotonic() < deadline, "what the store counts cannot be read"
                continue
            seen = {tenant: view["tenant"] for tenant, view in views.items()}
            spent = {tenant: _pico(seen[tenant]["spent_this_month"]) for tenant in owed}
            if spent == owed or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        reserved = {tenant: _pico(seen[tenant]["reserved_this_month"]) for tenant in owed}
        left = tuple(f"{tenant} reserved: {pico}" for tenant, pico in reserved.items() if pico)
        windows = {tenant: use["tokens_last_minute"] for tenant, use in seen.items()}
        return Rest(
            None if left else rest.zero_after_ms,
            rest.left + left,
            windows if with_windows else {},
            spent,
        )

    def spans(self) -> list[Span]:
        """What the engines ran."""
        found: list[Span] = []
        for index in range(len(self.system.ready["workers"])):
            since, page = 0, {"entries": [None]}
            while page["entries"]:
                page = self.system.worker(f"/weir/ledger?since={since}", index=index)
                since = page["next"]
                found += [_span(entry) for entry in page["entries"] if not entry["health"]]
        return found

    async def rows(self, expected: set[str]) -> list[Row]:
        """The usage records, once those of all expected requests are there or are overdue."""
        deadline = time.monotonic() + SHIPPED_WITHIN_S
        while True:
            rows = await self.system.sql(_ROWS, list(self.ids.values()))
            if expected <= {row["request_id"].hex for row in rows}:
                break
            if time.monotonic() > deadline:
                break
        return [_row(row) for row in rows]

    def _priced(self) -> bool:
        """Give every token the same price. False where this Weir has no prices."""
        token = self.system.ready["users"]["finance"]["token"]
        url = self.system.gateway(0) + "/billing/v1/prices"
        body = {"model": self.system.model, "currency": CURRENCY, "input": PRICE, "output": PRICE}
        reply = self.system.request("POST", url, body, token=token)
        assert reply.status in (201, 404), reply.raw
        return reply.status == 201

    def _body(self, mix: Mix, changed: Fields | None = None) -> dict[str, object]:
        budget = mix.budget if self.has_budgets else None
        return limits_body(mix, self.system.model, budget, changed)

    def _everywhere(self, mix: Mix, limits: Fields) -> None:
        """Wait until every gateway that answers shows these limits. One that was killed reads them
        when it starts."""
        deadline = time.monotonic() + EVERYWHERE_WITHIN_S
        wanted = [limits.get(kind) for kind in KINDS]
        for index in range(len(self.system.ready["gateways"])):
            while True:
                try:
                    shown = self._limits_of(mix, gateway=index).get("tenant", {})
                except (OSError, http.client.HTTPException):
                    if self.kills:
                        break
                    raise
                if [shown.get(kind) for kind in KINDS] == wanted:
                    break
                assert time.monotonic() < deadline, f"{mix.name}'s limits are not those of {index}"

    def _limits_of(self, mix: Mix, *, gateway: int) -> Any:
        url = self.system.gateway(gateway) + "/v1/limits"
        return self.system.request("GET", url, token=self.secrets[mix.name, 0]).json

    def _note(self, scope: Scope, limits: Fields, sent_ms: int = 0) -> None:
        for kind, value in limits.items():
            now_ms = _now_ms() if sent_ms else 0
            self._changes[kind, scope].append(Change(sent_ms, now_ms, value))

    def _put(self, path: str, body: Any) -> None:
        """Where Postgres is too busy nothing was changed: then once more."""
        deadline = time.monotonic() + WRITTEN_WITHIN_S
        while True:
            reply = self.system.admin("PUT", f"/admin/v1{path}", body)
            if reply.status == 200:
                return
            assert reply.status == 503, reply.raw
            assert time.monotonic() < deadline, reply.raw

    def _done(self, path: str, body: Any) -> Any:
        reply = self.system.admin("POST", f"/admin/v1{path}", body)
        assert reply.status == 201, reply.raw
        return reply.json


def _span(entry: Any) -> Span:
    return Span(
        request_id=entry["rid"][:32],
        queued_ms=entry["queued_at_ms"],
        started_ms=entry["started_at_ms"],
        ended_ms=entry["ended_at_ms"],
        prompt_tokens=entry["prompt_tokens"],
        output_tokens=entry["completion_tokens"],
        cached_tokens=entry["cached_tokens"],
    )


def _row(row: Any) -> Row:
    ended = row["ended_at"] or row["admitted_at"]
    return Row(
        request_id=row["request_id"].hex,
        tenant=row["tenant_id"],
        key=row["api_key_id"],
        model=row["model"],
        admitted_ms=_ms(row["admitted_at"]),
        ended_ms=_ms(ended),
        outcome=row["outcome"],
        prompt_tokens=row["prompt_tokens"] or 0,
        output_tokens=row["output_tokens"] or 0,
        sequences=row["sequences"],
        engine_final=row["usage_source"] == "engine_final",
        billable=row["billable"],
        cost_pico=row["cost_pico"],
    )


def _pico(amount: str | None) -> int | None:
    return None if amount is None else pico_of(amount)


def _ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
