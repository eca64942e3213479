"""Tools that a request offers, which of them is to be called, and the form of an answer.

JSON Schemas and grammars are open: what stands in them is the tenant's."""

from typing import Literal

import msgspec


class Function(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A function that the model may call."""

    name: str
    description: str | None = None
    parameters: dict[str, object] | None = None
    strict: bool | None = None


class Tool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool; no engine has other kinds than functions."""

    function: Function
    type: Literal["function"] = "function"


class FunctionName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A function by its name."""

    name: str


class NamedTool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The one tool to call."""

    function: FunctionName
    type: Literal["function"] = "function"


ToolChoice = Literal["auto", "none", "required"] | NamedTool


class TextFormat(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="text"
):
    """Any text."""


class JsonObjectFormat(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="json_object"
):
    """Some JSON object."""


class JsonSchema(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON Schema with its name."""

    name: str
    description: str | None = None
    schema: dict[str, object] | None = None
    strict: bool | None = None


class JsonSchemaFormat(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="json_schema"
):
    """JSON of a schema."""

    json_schema: JsonSchema


class Structure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """JSON of a schema between two texts."""

    begin: str
    end: str
    schema: dict[str, object] | None = None


class StructuralTagFormat(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="structural_tag"
):
    """SGLang's: structures that begin at a trigger, or a `format` in xgrammar's own terms."""

    structures: list[Structure] | None = None
    triggers: list[str] | None = None
    at_least_one: bool | None = None
    format: dict[str, object] | None = None


ResponseFormat = TextFormat | JsonObjectFormat | JsonSchemaFormat | StructuralTagFormat
FORMAT_KINDS = ("text", "json_object", "json_schema", "structural_tag")
