"""Single keys on the admin API: look, revoke, rotate, limits."""

from typing import Any

from litestar import Controller, Response, delete, get, post, put
from litestar.params import FromPath

from gateway.administration.views import View, key_view
from gateway.domain.instants import shown
from gateway.domain.permissions import Permission
from gateway.domain.tenant import Limits
from gateway.http.access import Own, needs
from gateway.http.admin_bodies import RotationBody, read_body
from gateway.http.admin_requests import AdminRequest, Verbs, actor_of
from gateway.http.confirmed import confirmation_headers, confirmation_view
from gateway.http.guards import tenant_of
from gateway.http.openapi_answers import KeyAnswer, NewKeyAnswer, RevokedAnswer
from gateway.http.openapi_operations import described


class KeyController(Controller):
    """`/admin/v1/keys/{id}`."""

    path = "/keys/{key_id:str}"
    tags = ("keys",)

    @get(opt=described(KeyAnswer) | needs(Permission.KEYS_READ, own=Own.KEY))
    async def get_key(self, administration: Verbs, key_id: FromPath[str]) -> View:
        """One key, revoked or not, without its secret."""
        return key_view(await administration.get_key(key_id))

    @delete(
        status_code=200, opt=described(RevokedAnswer) | needs(Permission.KEYS_WRITE, own=Own.KEY)
    )
    async def revoke_key(
        self, request: AdminRequest, administration: Verbs, key_id: FromPath[str]
    ) -> View:
        """Revoke a key for good; every gateway refuses it within a second, and its open streams
        end. Says which gateways have confirmed that, after 1.2 s at most."""
        revoked = await administration.revoke_key(actor_of(request), key_id)
        found = await administration.confirm_key(key_id)
        return {
            "id": key_id,
            "revoked_at": shown(revoked.revoked_at_ms),
            **confirmation_view(found),
        }

    @post(
        "/rotate",
        opt=described(NewKeyAnswer, body=RotationBody, body_required=False)
        | needs(Permission.KEYS_WRITE, own=Own.KEY),
    )
    async def rotate_key(
        self, request: AdminRequest, administration: Verbs, key_id: FromPath[str]
    ) -> Response[View]:
        """Replace a key by a new one, whose secret is in this answer and nowhere else; the old one
        works for `grace_ms` more. `x-weir-unconfirmed` names the gateways that have not confirmed
        that they take the new one and, without grace, refuse the old one."""
        body = await read_body(request, RotationBody, empty=RotationBody())
        key, secret = await administration.rotate_key(
            actor_of(request), key_id, grace_ms=body.grace_ms
        )
        # The old one's last change, its end, is of the same transaction.
        found = await administration.confirm_key(key_id)
        return Response(key_view(key, secret=secret), headers=confirmation_headers(found))

    @get("/limits", opt=described(Limits) | needs(Permission.KEYS_READ, own=Own.KEY))
    async def get_limits(self, administration: Verbs, key_id: FromPath[str]) -> Limits:
        """A key's own limits, in the form that PUT takes."""
        return await administration.get_key_limits(key_id)

    @put("/limits", opt=described(Limits, body=Limits) | needs(Permission.KEYS_WRITE, own=Own.KEY))
    async def put_limits(
        self, request: AdminRequest, administration: Verbs, key_id: FromPath[str]
    ) -> Response[Limits]:
        """Replace all of a key's limits; fields that are absent take their defaults. A tenant's
        admin sets none above the tenant's own. `x-weir-unconfirmed` names the gateways that have
        not confirmed them."""
        fields = await read_body(request, dict[str, Any])
        within_tenant = tenant_of(request) is not None
        changed = await administration.put_key_limits(
            actor_of(request), key_id, fields, within_tenant=within_tenant
        )
        found = await administration.confirm_key(key_id)
        return Response(changed.limits, headers=confirmation_headers(found))
