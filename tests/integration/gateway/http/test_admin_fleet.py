"""Models, workers and users on the admin API."""

from admin_api import AdminApi


async def test_a_model_is_registered_and_listed(api: AdminApi) -> None:
    """Registering again changes it."""
    body = {"id": "m2", "context_tokens": 4096, "max_output_tokens": 1024}
    assert (await api.json("POST", "/models", body))["default_output_tokens"] == 256
    await api.json("POST", "/models", {**body, "default_output_tokens": 64})
    listed = await api.json("GET", "/models")
    assert listed["items"][1] == {**body, "default_output_tokens": 64}


async def test_a_worker_is_registered_drained_and_removed(api: AdminApi) -> None:
    """Its key is never shown, only that there is one."""
    body = {"id": "w2", "model": "m", "url": "http://10.0.0.2:1", "api_key": "engine-secret"}
    answer = await api.call("POST", "/workers", body)
    assert answer.status_code == 201
    assert "engine-secret" not in answer.text
    assert answer.json()["has_api_key"] is True
    assert (await api.json("POST", "/workers/w2/drain"))["draining"] is True
    resumed = await api.json("POST", "/workers/w2/drain", {"draining": False})
    assert resumed == await api.json("GET", "/workers/w2")
    assert resumed["draining"] is False
    listed = await api.call("GET", "/workers")
    assert [worker["id"] for worker in listed.json()["items"]] == ["w", "w2"]
    assert "engine-secret" not in listed.text
    assert (await api.call("DELETE", "/workers/w2")).status_code == 204
    assert (await api.call("GET", "/workers/w2")).status_code == 404


async def test_a_worker_is_reserved_for_a_class(api: AdminApi) -> None:
    """And serves both again where it is registered without."""
    body = {"id": "w2", "model": "m", "url": "http://10.0.0.2:1"}
    assert (await api.json("POST", "/workers", body))["class"] is None
    reserved = await api.json("POST", "/workers", {**body, "class": "batch"})
    assert reserved["class"] == "batch"
    assert "request_class" not in reserved
    assert await api.json("GET", "/workers/w2") == reserved
    listed = (await api.json("GET", "/workers"))["items"]
    assert {each["id"]: each["class"] for each in listed} == {"w": None, "w2": "batch"}
    refused = await api.call("POST", "/workers", {**body, "class": "urgent"})
    assert refused.status_code == 422
    assert "class" in refused.text
    assert (await api.json("POST", "/workers/w2/drain"))["class"] == "batch"
    assert (await api.json("POST", "/workers", body))["class"] is None


async def test_a_user_gets_a_token_and_loses_it(api: AdminApi) -> None:
    """A token works until it is revoked or its user is disabled; passwords are never shown."""
    body = {"email": "new@weir.local", "role": "viewer", "password": "correct horse battery"}
    answer = await api.call("POST", "/users", body)
    assert answer.status_code == 201
    assert "horse" not in answer.text
    user = answer.json()
    path = f"/users/{user['id']}"
    issued = await api.json("POST", f"{path}/tokens", {"name": "laptop"})

    async def status() -> int:
        headers = {"authorization": f"Bearer {issued['token']}"}
        return (await api.call("GET", "/tenants", headers=headers)).status_code

    assert await status() == 200
    assert (await api.json("PATCH", path, {"disabled": True}))["disabled"] is True
    assert await status() == 401
    assert (await api.json("PATCH", path, {"disabled": False, "role": "operator"}))["role"] == (
        "operator"
    )
    assert await status() == 200
    assert (await api.call("DELETE", f"{path}/tokens/laptop")).status_code == 204
    assert await status() == 401
    users = await api.json("GET", "/users")
    assert "new@weir.local" in [each["email"] for each in users["items"]]
    assert issued["token"] not in (await api.call("GET", "/audit")).text
