"""`/health` as SGLang has it: a token is generated, and the answer takes a second."""

import asyncio
import time
import uuid

from backend.sglang_http.engine import Engine, GenerationRequest, Sampling
from backend.sglang_http.refusals import Refused

RID_PREFIX = "HEALTH_CHECK"
"""So SGLang calls them. A client may call its own so, too."""
POLL_S = 1.0
TIMEOUT_S = 20.0
"""As many of the engine's own seconds where its clock is slow: its token takes so much longer."""


async def is_healthy(engine: Engine) -> bool:
    """Whether the engine generates. Where something runs, its next token is proof enough; else one
    is asked for."""
    if not engine.ready or engine.draining:
        return False
    timeout_s = TIMEOUT_S / min(1.0, engine.info.clock_speed)
    before, deadline = engine.tokens_generated, time.monotonic() + timeout_s
    rid = f"{RID_PREFIX}_{uuid.uuid4().hex}"
    if not engine.generating:
        prompt = await engine.encode_text("0")
        sampling = Sampling(1, temperature=0.0)
        try:
            engine.submit(GenerationRequest(rid, prompt, sampling, stream=False, health=True))
        except Refused:
            return False
    while time.monotonic() < deadline:
        await asyncio.sleep(POLL_S)
        if engine.tokens_generated > before:
            return True
        if engine.draining:
            break
    engine.abort(rid)
    return False
