"""JSON Schemas of the document, made of the structs that check the bodies: neither can drift."""

from collections.abc import Collection, Mapping
from typing import Any, get_args

import msgspec

from gateway.domain.tenant import TenantLimits
from gateway.http.admin_bodies import TenantBody
from gateway.wire.bodies import ChatBody, CompletionBody
from gateway.wire.fields import TEMPLATE_SWITCHES
from gateway.wire.request import PROMPTS_MAX, SERVICE_TIERS

Json = dict[str, Any]
REF_TEMPLATE = "#/components/schemas/{name}"


def schemas_of(types: Collection[Any]) -> tuple[dict[Any, Json], Json]:
    """Each type's schema, and the components that they refer to."""
    found = list(types)
    schemas, components = msgspec.json.schema_components(
        found, schema_hook=_any_value, ref_template=REF_TEMPLATE
    )
    for body in (ChatBody, CompletionBody):
        if body.__name__ in components:
            _tighten(components[body.__name__])
    if TenantBody.__name__ in components and TenantLimits.__name__ in components:
        # Kept as it came until the models that it names are known.
        components[TenantBody.__name__]["properties"]["limits"] = {
            "$ref": REF_TEMPLATE.format(name=TenantLimits.__name__)
        }
    return dict(zip(found, schemas, strict=True)), components


def parameter_schema(annotation: Any) -> Json:
    """The schema of a query or path parameter; null stands for one that is absent."""
    accepted = [kind for kind in get_args(annotation) or (annotation,) if kind is not type(None)]
    return msgspec.json.schema(accepted[0])


def _any_value(_kind: type) -> Json:
    return {"description": "any JSON value"}


def _tighten(body: Json) -> None:
    """What `read_request` checks beyond the types: other fields, empty prompts, closed sets."""
    body["additionalProperties"] = False
    properties: Json = body["properties"]
    properties["service_tier"]["anyOf"][0] = {"enum": sorted(SERVICE_TIERS)}
    if "messages" in properties:
        del properties["messages"]["default"]
        body["required"].append("messages")
        switches: Mapping[str, Any] = properties["chat_template_kwargs"]["anyOf"][0]
        accepted = switches["additionalProperties"]
        properties["chat_template_kwargs"]["anyOf"][0] = {
            "type": "object",
            "properties": dict.fromkeys(sorted(TEMPLATE_SWITCHES), accepted),
            "additionalProperties": False,
        }
    else:
        prompt = {"type": "string", "minLength": 1}
        prompts = {"type": "array", "items": prompt, "minItems": 1, "maxItems": PROMPTS_MAX}
        properties["prompt"] = {"anyOf": [prompt, prompts]}
        body["required"].append("prompt")
