"""What a running `weir dev` tells: `ready.json` to programs, and a welcome to a person."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec

from backend.embedded.data_dir import write_private
from gateway.dev_secrets import DevSecrets, SeededUser
from gateway.domain.account import Role
from gateway.domain.tenant import RequestClass, Worker


class ReadyWorker(msgspec.Struct, frozen=True):
    """One worker, as registered."""

    id: str
    url: str
    engine: str


class Pids(msgspec.Struct, frozen=True):
    """Process ids of what this launcher runs; None and empty lists for what it does not."""

    gateways: list[int]
    workers: list[int]
    hosted: list[int] | None
    """None where no provider is ours to run."""
    redis: int | None
    postgres: int | None


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `ready.json`."""

    gateways: list[str]
    console: str
    database_url: str
    redis_url: str
    workers: list[ReadyWorker]
    hosted: str | None
    pids: Pids
    users: dict[Role, SeededUser]
    tenants: dict[str, dict[RequestClass, str]]
    models: list[str]


def ready_document(
    *,
    gateways: Sequence[str],
    database_url: str,
    redis_url: str,
    workers: Sequence[Worker],
    hosted: str | None,
    pids: Pids,
    secrets: DevSecrets | None,
    models: Sequence[str],
) -> Ready:
    """The document; without `secrets` nothing was seeded."""
    return Ready(
        gateways=list(gateways),
        console=f"{gateways[0]}/console",
        database_url=database_url,
        redis_url=redis_url,
        workers=[ReadyWorker(worker.id, worker.url, worker.engine) for worker in workers],
        hosted=hosted,
        pids=pids,
        users={} if secrets is None else secrets.users,
        tenants={} if secrets is None else secrets.tenants,
        models=list(models),
    )


def write_ready(path: Path, document: Ready) -> None:
    """Replace `path` atomically, for its owner's eyes only."""
    write_private(path, msgspec.json.format(msgspec.json.encode(document)) + b"\n")


def welcome(document: Ready, *, ready_path: Path, log_folder: Path) -> str:
    """What to print once everything serves."""
    where = "\n".join(f"  gateway  {url}/v1" for url in document.gateways)
    if document.hosted is not None:
        where += "\n" + _hosted_line(document, data_dir=ready_path.parent)
    simulated = any(worker.engine == "simulated" for worker in document.workers)
    served = ", ".join(document.models) + (" (simulated)" if simulated else "")
    if not document.tenants:
        hint = "  No key yet: weir tenant create, then weir key create (--no-seed was given)."
        return f"\nWeir serves {served}.\n{where}\n\n{hint}\n"
    tenant_id, keys = next(iter(document.tenants.items()))
    key, url, model = keys[RequestClass.INTERACTIVE], document.gateways[0], document.models[0]
    return f"""
Weir serves {served}.
{where}
  logs     {log_folder}
  console  {document.console}, as {_admin_line(document)}
  secrets  {ready_path}: every key; the admin's token is users.admin.token

Ask it, as tenant {tenant_id}:

curl -N {url}/v1/chat/completions \\
  -H "Authorization: Bearer {key}" -H "Content-Type: application/json" \\
  -d '{{"model": "{model}", "stream": true,
       "messages": [{{"role": "user", "content": "What is a weir?"}}]}}'

or in Python (pip install openai):

from openai import OpenAI
client = OpenAI(base_url="{url}/v1", api_key="{key}")
question = [{{"role": "user", "content": "What is a weir?"}}]
for chunk in client.chat.completions.create(model="{model}", messages=question, stream=True):
    print(chunk.choices[0].delta.content or "", end="", flush=True)

Ctrl-C stops all of it.
"""


def _admin_line(document: Ready) -> str:
    admin = document.users.get(Role.ADMIN)
    return "the users in secrets" if admin is None else f"{admin.email}, users.admin.password"


def _hosted_line(document: Ready, *, data_dir: Path) -> str:
    tenant_id = next(iter(document.tenants), "TENANT")
    where = "" if data_dir == Path(".weir") else f" --data-dir {shlex.quote(str(data_dir))}"
    return (
        f"  hosted   {document.hosted}, once a tenant allows it: "
        f"weir limit set {tenant_id} --data-policy hosted_allowed{where}"
    )
