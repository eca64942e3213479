"""A `weir dev` for the SDKs' tests, and what they do to it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from sdk.rows import CHAT
from sdk.seen import Call, Json, Kind
from weir_dev import WeirDev, weir_dev
from worker_process import WorkerProcess, running_worker

FIRST_EVENT_TIMEOUT_MS = 5000
STALL_TIMEOUT_MS = 4000
KEEPALIVE_MS = 1000
PATIENCE: Mapping[str, str] = {
    "WEIR_FIRST_EVENT_TIMEOUT_MS": str(FIRST_EVENT_TIMEOUT_MS),
    "WEIR_STALL_TIMEOUT_MS": str(STALL_TIMEOUT_MS),
    "WEIR_KEEPALIVE_MS": str(KEEPALIVE_MS),
    "WEIR_REDIS_TIMEOUT_MS": "1000",
}
"""Engines are waited for short enough for a test to see it, Redis longer: a busy machine is not
what is tested."""


@contextmanager
def simulated(folder: Path) -> Iterator[WeirDev]:
    """One gateway over one simulated worker, with little patience."""
    with weir_dev(folder, "--engine", "simulated", environment=PATIENCE) as system:
        yield system


def base_url(system: WeirDev) -> str:
    """What an SDK is given."""
    return system.gateway() + "/v1"


def call(
    system: WeirDev,
    *,
    kind: Kind = "chat",
    key: str | None = None,
    max_retries: int = 0,
    **fields: object,
) -> Call:
    """A chat of the system's tenant; `fields` are the SDK's arguments."""
    asked: Json = {"model": system.model, "max_tokens": 8, **CHAT, **fields}
    return Call(kind, asked, base_url(system), key or system.key(), max_retries)


@contextmanager
def fault(system: WeirDev, **fields: object) -> Iterator[None]:
    """The worker fails so on its next request."""
    system.worker("/weir/faults", fields)
    try:
        yield
    finally:
        system.request("DELETE", system.ready["workers"][0]["url"] + "/weir/faults")


def key_with(system: WeirDev, **fields: object) -> str:
    """A new key of the system's tenant."""
    body: Json = {"name": "k", "class": "interactive", **fields}
    made = system.admin("POST", f"/admin/v1/tenants/{system.tenant}/keys", body)
    assert made.status == 201, made.raw
    secret: str = made.json["secret"]
    return secret


def new_model(system: WeirDev) -> str:
    """A model that no worker serves."""
    model = f"m-{uuid4().hex[:12]}"
    body = {"id": model, "context_tokens": 8192, "max_output_tokens": 2048}
    made = system.admin("POST", "/admin/v1/models", body)
    assert made.status == 201, made.raw
    return model


@contextmanager
def worker_of(system: WeirDev, model: str) -> Iterator[WorkerProcess]:
    """A worker that serves the model, started by nobody again when it dies."""
    worker_id = f"w-{model}"
    with running_worker("simulated", "--model", model) as worker:
        body = {"id": worker_id, "model": model, "url": worker.url}
        made = system.admin("POST", "/admin/v1/workers", body)
        assert made.status == 201, made.raw
        try:
            yield worker
        finally:
            system.admin("DELETE", f"/admin/v1/workers/{worker_id}")
