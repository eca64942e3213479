"""Real SGLang servers for tests, each started as a person starts one: `weir backend sglang`."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from servers import TESTS, free_port
from weir_dev import WeirDev

from backend.local.model_file import find_model
from gateway.domain.engine_facts import EngineFacts
from gateway.wire.server_info import read_server_info

MODEL = "smollm2-135m"
START_WITHIN_S = 400.0
"""20 s where nothing else runs; imports alone take a minute on a busy machine."""
POLL_S = 0.1
TAIL_CHARACTERS = 3000
CHAT = "/v1/chat/completions"
FOLDER = TESTS / "sglang"
CPU_ONLY = {
    "SGLANG_USE_CPU_ENGINE": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONUNBUFFERED": "1",
    "PYTHONPATH": str(FOLDER / "shims"),
}
"""What SGLang's wheel needs on a machine without a GPU."""
ON_CPU = (
    # 32 bit: two ways to the same prompt (cached, in a batch) then agree to the token.
    *("--device", "cpu", "--precision", "float32", "--kv-fraction", "0.1"),
)
MAIN = (
    *("--context-length", "4096", "--kv-tokens", "16384", "--max-running-requests", "16"),
    *("--tool-call-parser", "qwen25", "--reasoning-parser", "deepseek-v3"),
)
TIGHT_POOL_TOKENS = 600
TIGHT_QUEUE = 2
TIGHT = (
    *("--context-length", "2048", "--kv-tokens", str(TIGHT_POOL_TOKENS)),
    *("--max-running-requests", "1", "--max-queued-requests", str(TIGHT_QUEUE)),
)
"""One running place, two waiting ones, and a KV pool that is smaller than the context."""


@dataclass
class SglangServer:
    """One running engine."""

    url: str
    process: subprocess.Popen[bytes]
    log_path: Path

    @property
    def tail(self) -> str:
        """The end of its log, for a failure's message."""
        lines = self.log_path.read_text(errors="replace").splitlines()
        shown = [line[:300] for line in lines if " HTTP/1.1" not in line]
        return "\n".join(shown)[-TAIL_CHARACTERS:]

    @property
    def ready(self) -> bool:
        """Whether it serves. Fails, showing its log, where the process has ended."""
        assert self.process.poll() is None, f"SGLang ended:\n{self.tail}"
        try:
            return self._ask("/ready")[0] == 200
        except OSError:
            return False

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """What the engine itself answers, past any gateway."""
        status, answer = self._ask(path, body)
        assert status == 200, answer
        return json.loads(answer)

    @contextmanager
    def streaming(self, **fields: Any) -> Iterator[HTTPConnection]:
        """A chat stream of somebody else's, past any gateway, once it is answered; leaving the
        block aborts it."""
        parts = urlsplit(self.url)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=110)
        message = {"role": "user", "content": "hi"}
        body = {"model": MODEL, "messages": [message], "stream": True, **fields}
        try:
            connection.request("POST", CHAT, json.dumps(body), {"content-type": "application/json"})
            yield connection
        finally:
            connection.close()

    def counted(self, family: str) -> int:
        """The sum of one of its counters; 0 where it has not counted yet."""
        text = self._ask("/metrics")[1].decode()
        values = re.findall(rf"^sglang:{family}{{.*}} (\S+)$", text, re.MULTILINE)
        return round(sum(map(float, values)))

    @property
    def facts(self) -> EngineFacts:
        """What it says of itself, as a gateway reads it."""
        return read_server_info(self._ask("/server_info")[1])

    @property
    def generated(self) -> int:
        """Tokens that it has generated, those of aborted requests included."""
        return self.counted("generation_tokens_total")

    def load(self) -> dict[str, int]:
        """How many run and wait. A snapshot that lags by some decoding steps."""
        (rank,) = json.loads(self._ask("/v1/loads")[1])["loads"]
        return {"running": rank["num_running_reqs"], "waiting": rank["num_waiting_reqs"]}

    @property
    def idle(self) -> bool:
        """Whether its scheduler holds no request: only then does it flush its cache."""
        return self._ask("/flush_cache")[0] == 200

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> tuple[int, bytes]:
        parts = urlsplit(self.url)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=110)
        headers = {"content-type": "application/json"}
        try:
            if body is None:
                connection.request("GET", path)
            else:
                connection.request("POST", path, json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def kill(self) -> None:
        """kill -9, every process of it."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def stop(self) -> None:
        """SIGTERM, then SIGKILL for what is left."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)


@dataclass(frozen=True)
class Behind:
    """An engine, and the Weir in front of it, seen by a tenant of one test's own."""

    weir: WeirDev
    engine: SglangServer


def soon(holds: Callable[[], object], what: str, *, within_s: float = 30.0) -> None:
    """Return once `holds()`; fail where that takes longer."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not come within {within_s} s"
        time.sleep(0.02)


def checkpoint_of(python: Path) -> Path:
    """The model as a checkpoint, made on first use and kept in the environment of `python`."""
    folder = python.parent.parent / "checkpoints" / MODEL
    if not folder.exists():
        model = find_model()
        made = subprocess.run(
            [
                *(python, FOLDER / "make_checkpoint.py"),
                *(Path(model.folder) / model.filename, folder),
            ],
            env={**os.environ, **CPU_ONLY},
            capture_output=True,
            text=True,
            check=False,
        )
        assert folder.exists(), made.stderr[-TAIL_CHARACTERS:]
    return folder


def start_sglang(python: Path, checkpoint: Path, log_path: Path, *options: str) -> SglangServer:
    """Start a server; it does not serve yet."""
    port = str(free_port())
    command = [
        *(sys.executable, "-m", "gateway", "backend", "sglang", "--python", str(python)),
        *("--model-path", str(checkpoint), "--model", MODEL, "--port", port, *ON_CPU, *options),
        # An idle scheduler would keep a core busy.
        *("--", "--attention-backend", "torch_native", "--sleep-on-idle"),
    ]
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **CPU_ONLY},
            start_new_session=True,
        )
    return SglangServer(f"http://127.0.0.1:{port}", process, log_path)


@contextmanager
def running_sglang(python: Path, folder: Path) -> Iterator[tuple[SglangServer, SglangServer]]:
    """The main server and the tight one, started side by side, until the block ends."""
    checkpoint = checkpoint_of(python)
    pair = (
        start_sglang(python, checkpoint, folder / "main.log", *MAIN),
        start_sglang(python, checkpoint, folder / "tight.log", *TIGHT),
    )
    try:
        deadline = time.monotonic() + START_WITHIN_S
        for server in pair:
            while not server.ready:
                assert time.monotonic() < deadline, f"SGLang is not ready:\n{server.tail}"
                time.sleep(POLL_S)
        yield pair
    finally:
        for server in pair:
            server.stop()
