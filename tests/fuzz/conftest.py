"""The whole system that is fuzzed: `weir dev` over an engine that judges what it is sent."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fuzz.cases import Keys
from fuzz.corpus import MODEL
from weir_dev import WeirDev, weir_dev

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Fuzzed:
    """The running system and what the cases may use of it."""

    weir: WeirDev
    engine_url: str
    keys: Keys

    def seen(self) -> Any:
        """What the engine was sent."""
        return self.weir.request("GET", self.engine_url + "/fuzz/seen").json


@contextmanager
def recording_engine() -> Iterator[str]:
    """The engine's address, until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fuzz.recording_engine", MODEL],
        stdout=subprocess.PIPE,
        text=True,
        cwd=FOLDER.parent,
        env={"PYTHONPATH": f"{FOLDER.parent}:{FOLDER.parent.parent}"},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert " at http://" in line, "the engine did not start"
        yield line.split(" at ")[1].strip()
    finally:
        process.terminate()
        process.wait(15)


@pytest.fixture
def fuzzed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fuzzed]:
    """A fresh system with tenants, keys, and things that may be spoilt."""
    # A busy machine must not look like a Redis that is down: no 503 is provoked here.
    monkeypatch.setenv("WEIR_REDIS_TIMEOUT_MS", "5000")
    with recording_engine() as url, weir_dev(tmp_path, "--engine", url) as weir:
        yield Fuzzed(weir, url, _keys(weir))


def _keys(weir: WeirDev) -> Keys:
    limited = weir.with_new_tenant()
    limited.set_limits(max_sequences=1, tpm=3_000, rpm=60)
    revoked = _made(weir, "/admin/v1/tenants/acme/keys", name="r", **{"class": "batch"})
    assert weir.admin("DELETE", f"/admin/v1/keys/{revoked['id']}").status == 200
    elsewhere = _made(
        weir, "/admin/v1/tenants/acme/keys", name="e", ip_allow=["10.0.0.0/8"], **{"class": "batch"}
    )
    _made(weir, "/admin/v1/models", id="spoilt", context_tokens=1000, max_output_tokens=256)
    narrow = _made(
        weir, "/admin/v1/tenants/acme/keys", name="n", models=["spoilt"], **{"class": "batch"}
    )
    spoilt = [_made(weir, "/admin/v1/tenants", id=f"fuzz-{n}", name="n") for n in range(2)]
    key = _made(weir, "/admin/v1/tenants/fuzz-0/keys", name="k", **{"class": "interactive"})
    user = _made(
        weir, "/admin/v1/users", email="f@fuzz.local", role="viewer", password="long enough, no?"
    )
    viewer = _made(
        weir, "/admin/v1/users", email="v@fuzz.local", role="viewer", password="long enough, no?"
    )
    token = _made(weir, f"/admin/v1/users/{viewer['id']}/tokens", name="t")["token"]
    worker = _made(
        weir, "/admin/v1/workers", id="w-spoilt", model="spoilt", url="http://127.0.0.1:1"
    )
    _until_known(weir, narrow["secret"])
    return Keys(
        tenants=(weir.key("acme"), weir.key("globex"), weir.key("globex", "batch")),
        limited=limited.key(),
        refused=(revoked["secret"], elsewhere["secret"], narrow["secret"]),
        admin=weir.ready["users"]["admin"]["token"],
        viewer=token,
        ids={
            "tenant_id": tuple(each["id"] for each in spoilt),
            "key_id": (key["id"],),
            "user_id": (user["id"],),
            "worker_id": (worker["id"],),
            "name": ("t", "spoilt"),
        },
    )


def _made(weir: WeirDev, path: str, **body: Any) -> Any:
    reply = weir.admin("POST", path, body)
    assert reply.status == 201, reply.raw
    return reply.json


def _until_known(weir: WeirDev, secret: str) -> None:
    """Wait until the newest key is in the gateway's directory, and so all before it."""
    deadline = time.monotonic() + 5
    while weir.request("GET", weir.gateway() + "/v1/models", token=secret).status != 200:
        assert time.monotonic() < deadline
        time.sleep(0.02)
