"""What is tested, asked of itself before anything is sent."""

from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec

from backend.loadtest.run import TargetFacts

ANSWER_S_MAX = 10.0
MODELS_SHOWN = 5
TAKING_MIN_TOKENS = {"simulated"}
"""Of Weir's own engines; `local` refuses the field."""
WEIR_OWNERS = {"weir": False, "weir-simulated": True}
"""`owned_by` of a gateway's models, and whether a worker behind it is simulated."""


class TargetNotReady(Exception):
    """The URL does not answer, or has no such model. One line."""


class _ServerInfo(msgspec.Struct):
    version: str | None = None
    weir_engine: str | None = None
    weir_engine_description: str | None = None
    weir_profile: str | None = None
    weir_clock_speed: float = 1.0


class _Model(msgspec.Struct):
    id: str
    owned_by: Any = None


class _Models(msgspec.Struct):
    data: list[_Model]


async def target_facts(
    url: str,
    model: str,
    api_key: str | None,
    *,
    simulated: bool | None = None,
    clock_speed: float | None = None,
    step_times: str | None = None,
) -> TargetFacts:
    """Check that the target serves the model, and ask it what it is. A worker says; a gateway of
    Weir says whether there are simulated workers behind it, but not how fast their clock runs and
    by which profile; a foreign server says nothing. What the caller says counts.

    Raises:
        TargetNotReady: with the one line to show.
    """
    shown = shown_url(url)
    base = url.rstrip("/").removesuffix("/v1")
    headers = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
    timeout = aiohttp.ClientTimeout(total=ANSWER_S_MAX)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session:
            status, body = await _get(session, f"{base}/v1/models", headers)
            owner = require_model(shown, model, status, body)
            # A key is for the server that serves the model, not for what else it may say.
            status, body = await _get(session, f"{base}/server_info", {})
    except TimeoutError as error:
        raise TargetNotReady(f"{shown} does not answer within {ANSWER_S_MAX:g} s") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise TargetNotReady(f"{shown} cannot be reached ({type(error).__name__})") from error
    facts = of_owner(read_facts(shown, body if status == 200 else b""), shown, owner)
    return replace(
        facts,
        simulated=facts.simulated if simulated is None else simulated,
        clock_speed=clock_speed or facts.clock_speed,
        step_times=step_times or facts.step_times,
    )


def require_model(shown: str, model: str, status: int, body: bytes) -> object:
    """Judge an answer of `/v1/models`. Returns the model's `owned_by`. Raises TargetNotReady."""
    if status in (401, 403):
        raise TargetNotReady(f"{shown} refuses the API key ({status})")
    if status != 200:
        raise TargetNotReady(f"{shown} answers {status} to GET /v1/models")
    try:
        models = {
            entry.id: entry.owned_by for entry in msgspec.json.decode(body, type=_Models).data
        }
    except msgspec.DecodeError:
        raise TargetNotReady(f"{shown} is no OpenAI-compatible server") from None
    if model not in models:
        listed = ", ".join(list(models)[:MODELS_SHOWN]) or "no model"
        more = ", …" if len(models) > MODELS_SHOWN else ""
        raise TargetNotReady(f"{shown} does not serve {model!r}, but {listed}{more}")
    return models[model]


def of_owner(facts: TargetFacts, shown: str, owner: object) -> TargetFacts:
    """With what the owner of its model says of a target that says nothing else."""
    if facts.kind != "unknown" or not isinstance(owner, str) or owner not in WEIR_OWNERS:
        return facts
    return replace(
        facts,
        description=f"Weir at {shown}",
        simulated=WEIR_OWNERS[owner],
        kind="weir",
        takes_min_tokens=True,
    )


def read_facts(shown: str, server_info: bytes) -> TargetFacts:
    """Of an answer of `/server_info`; empty where there is none."""
    try:
        info = msgspec.json.decode(server_info, type=_ServerInfo)
    except msgspec.DecodeError:
        return TargetFacts(f"OpenAI-compatible server at {shown}", simulated=None)
    if info.weir_engine is not None:
        what = info.weir_engine_description or f"{info.weir_engine} worker"
        return TargetFacts(
            f"{what} at {shown}",
            simulated=info.weir_engine == "simulated",
            clock_speed=info.weir_clock_speed,
            step_times=info.weir_profile,
            kind="engine",
            takes_min_tokens=info.weir_engine in TAKING_MIN_TOKENS,
        )
    if info.version is not None:
        return TargetFacts(
            f"SGLang {info.version} at {shown}",
            simulated=False,
            kind="engine",
            takes_min_tokens=True,
        )
    return TargetFacts(f"OpenAI-compatible server at {shown}", simulated=None)


def shown_url(url: str) -> str:
    """Without what may be secret in it: user, password and query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"


async def _get(
    session: aiohttp.ClientSession, url: str, headers: dict[str, str]
) -> tuple[int, bytes]:
    async with session.get(url, headers=headers) as response:
        return response.status, await response.read()
