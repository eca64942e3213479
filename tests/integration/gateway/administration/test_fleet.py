"""Models and workers."""

import pytest
from hosted_examples import a_provider
from msgspec.structs import replace

from gateway.administration import Administration
from gateway.domain.tenant import EngineKind, Model, RequestClass, Worker
from gateway.errors import NotFound, Unprocessable

ME = "cli:test"


WORKER = Worker(id="w-0", model="m", url="http://10.0.0.1:30000", api_key="engine-key")


async def test_registering_again_changes_or_does_nothing(administration: Administration) -> None:
    """The same worker twice is one audit entry; a new address is a change."""
    worker = WORKER
    await administration.register_worker(ME, worker)
    await administration.register_worker(ME, worker)
    moved = Worker(id="w-0", model="m", url="http://10.0.0.2:30000", kind=EngineKind.OPENAI)
    assert await administration.register_worker(ME, moved) == moved
    assert (await administration.list_workers()).items == [moved]
    actions = [entry.action for entry in (await administration.list_audit()).items]
    assert actions.count("worker.register") == 2


async def test_a_worker_goes_on_draining_when_it_registers_again(
    administration: Administration,
) -> None:
    """What an operator drained is not undone by the worker's restart (Q09)."""
    await administration.register_worker(ME, WORKER)
    assert (await administration.drain_worker(ME, "w-0")).draining
    again = await administration.register_worker(ME, WORKER)
    assert again.draining
    assert (await administration.get_worker("w-0")).draining
    assert not (await administration.drain_worker(ME, "w-0", False)).draining


async def test_a_reservation_is_stored_and_audited(administration: Administration) -> None:
    """The same one twice is one entry; to take it away is a change."""
    reserved = replace(WORKER, request_class=RequestClass.BATCH)
    for worker in (WORKER, reserved, reserved, WORKER):
        assert await administration.register_worker(ME, worker) == worker
        assert await administration.get_worker("w-0") == worker
    images = [entry.after for entry in (await administration.list_audit(3)).items]
    assert [image and image["request_class"] for image in images] == [None, "batch", None]


async def test_a_removed_worker_may_come_back(administration: Administration) -> None:
    """Removed, it is found no more; registered again, it is as new."""
    await administration.register_worker(ME, WORKER)
    await administration.drain_worker(ME, "w-0")
    await administration.remove_worker(ME, "w-0")
    assert (await administration.list_workers()).items == []
    with pytest.raises(NotFound):
        await administration.remove_worker(ME, "w-0")
    assert not (await administration.register_worker(ME, WORKER)).draining


async def test_an_engines_key_is_never_audited(administration: Administration) -> None:
    """The audit log says only that there is one."""
    await administration.register_worker(ME, WORKER)
    entry = (await administration.list_audit(1)).items[0]
    assert "engine-key" not in str(entry)
    assert entry.after is not None
    assert entry.after["has_api_key"] is True


async def test_a_worker_is_at_no_providers_server(administration: Administration) -> None:
    """What must stay here goes to any worker: nothing is stored, and the refusal names the other.
    A removed provider's server is free again."""
    await administration.register_hosted_provider(ME, a_provider(enabled=False))
    there = replace(WORKER, url="http://AI.example:443")
    with pytest.raises(Unprocessable, match="acme-ai") as refused:
        await administration.register_worker(ME, there)
    assert refused.value.param == "url"
    assert (await administration.list_workers()).items == []
    await administration.register_worker(ME, WORKER)
    with pytest.raises(Unprocessable, match="acme-ai"):
        await administration.register_worker(ME, there)
    assert (await administration.list_workers()).items == [WORKER]
    await administration.remove_hosted_provider(ME, "acme-ai")
    assert await administration.register_worker(ME, there) == there


async def test_another_key_is_audited_as_that(administration: Administration) -> None:
    """A rotation is no entry whose before is its after; neither key is in it."""
    await administration.register_worker(ME, WORKER)
    await administration.register_worker(ME, replace(WORKER, api_key="second-key"))
    await administration.drain_worker(ME, "w-0")
    drained, rotated, first = (await administration.list_audit(3)).items
    assert rotated.before is not None
    assert rotated.after == {**rotated.before, "api_key_changed": True}
    assert "api_key_changed" not in {**(drained.after or {}), **(first.after or {})}
    assert "-key" not in str([drained, rotated, first])


REFUSED_WORKERS = [
    (Worker(id="w", model="gpt-5", url="http://h:1"), "model"),
    (Worker(id="w", model="m", url="ftp://h:1"), "url"),
    (Worker(id="w", model="m", url="http://h:1/v1"), "url"),
    (Worker(id="w", model="m", url="http://u:p@h:1"), "url"),
    (Worker(id="w", model="m", url="http://h:99999"), "url"),
    (Worker(id="w", model="m", url="http://[::1"), "url"),
    (Worker(id="w/1", model="m", url="http://h:1"), "id"),
    (Worker(id="w", model="m", url="http://h:1", api_key="a\r\nb: c"), "api_key"),
    (Worker(id="w", model="m", url="http://h:1", engine="SG Lang"), "engine"),
]


async def test_what_cannot_be_a_worker_is_refused(
    administration: Administration,
) -> None:
    """Unprocessable names the field."""
    for worker, param in REFUSED_WORKERS:
        with pytest.raises(Unprocessable) as refused:
            await administration.register_worker(ME, worker)
        assert refused.value.param == param


REFUSED_MODELS = [
    (Model(id="", context_tokens=10, max_output_tokens=5), "id"),
    (Model(id="x", context_tokens=0, max_output_tokens=5), "context_tokens"),
    (Model(id="x", context_tokens=2**40, max_output_tokens=5), "context_tokens"),
    (Model(id="x", context_tokens=10, max_output_tokens=11), "max_output_tokens"),
    (Model(id="x", context_tokens=10, max_output_tokens=5), "default_output_tokens"),
]


async def test_what_cannot_be_a_model_is_refused(
    administration: Administration,
) -> None:
    """Unprocessable names the field."""
    for model, param in REFUSED_MODELS:
        with pytest.raises(Unprocessable) as refused:
            await administration.register_model(ME, model)
        assert refused.value.param == param


async def test_a_model_changes_in_place(administration: Administration) -> None:
    """Registering it again with other counts replaces them."""
    larger = Model(id="m", context_tokens=4096, max_output_tokens=1024)
    await administration.register_model(ME, larger)
    await administration.register_model(ME, larger)
    assert (await administration.list_models()).items == [larger]
    actions = [entry.action for entry in (await administration.list_audit()).items]
    assert actions == ["model.register"] * 2
