"""Values that a JSON Schema allows, or nearly.

Not hypothesis-jsonschema or schemathesis: a case must be made alone from its number in well under a
millisecond, and hypothesis draws a thousand times slower than the gateway answers.
"""

import random
from typing import Any

from fuzz.corpus import CANARY, PIXEL, SECRET

Json = Any
WORDS = (
    "a",
    "b1",
    "fuzz-0",
    "fuzz-1",
    "acme-2",
    "x" * 70,
    "",
    " ",
    "ünïcödé",
    "日本",
    "\u0000",
    "null",
)
DEPTH_MAX = 4


class SchemaValues:
    """Draws from the schemas of one OpenAPI document."""

    def __init__(self, document: Json) -> None:
        self._components: dict[str, Json] = document["components"]["schemas"]

    def draw(  # noqa: PLR0911 - one return a kind of schema
        self, schema: Json, rng: random.Random, *, name: str = "", depth: int = 0
    ) -> Json:
        """A value of the schema. `name` is the property that it is for."""
        if "$ref" in schema:
            return self.draw(
                self._components[schema["$ref"].rpartition("/")[2]], rng, name=name, depth=depth
            )
        if "anyOf" in schema:
            options = schema["anyOf"]
            # Null is the least telling of them.
            picked = rng.choice(
                options[:-1] if len(options) > 1 and rng.random() < 0.8 else options
            )
            return self.draw(picked, rng, name=name, depth=depth)
        if "enum" in schema:
            return rng.choice(schema["enum"])
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, rng, depth)
        if kind == "array":
            return self._array(schema, rng, name, depth)
        if kind in ("integer", "number"):
            return _number(schema, rng, whole=kind == "integer")
        if kind == "string":
            return _text(schema, rng, name)
        if kind == "null":
            return None
        if kind == "boolean":
            return rng.random() < 0.5
        return rng.choice((None, 0, "s", [], {}, True))

    def _object(self, schema: Json, rng: random.Random, depth: int) -> Json:
        required = schema.get("required", ())
        chance = rng.choice((0.05, 0.15, 0.3)) if depth == 0 else 0.2
        made: dict[str, Json] = {}
        for name, inner in schema.get("properties", {}).items():
            if name in required or rng.random() < chance:
                made[name] = self.draw(inner, rng, name=name, depth=depth + 1)
        more = schema.get("additionalProperties")
        if isinstance(more, dict) and depth < DEPTH_MAX:
            for _ in range(rng.randrange(3)):
                made[rng.choice(WORDS)] = self.draw(more, rng, depth=depth + 1)
        return made

    def _array(self, schema: Json, rng: random.Random, name: str, depth: int) -> Json:
        if name == "content" and rng.random() < 0.7:
            return [{"type": "text", "text": _text({}, rng, name)}]
        least = schema.get("minItems", 0)
        size = least if depth > DEPTH_MAX else least + rng.choice((0, 0, 1, 1, 2))
        return [
            self.draw(schema.get("items", {}), rng, name=name, depth=depth + 1) for _ in range(size)
        ]


def _number(schema: Json, rng: random.Random, *, whole: bool) -> Json:
    low = schema.get("minimum", schema.get("exclusiveMinimum", -5))
    high = schema.get("maximum", low + 100)
    if rng.random() < 0.05:
        return rng.choice((low, high))
    if whole:
        return (
            rng.randint(low, min(high, low + 4)) if rng.random() < 0.9 else rng.randint(low, high)
        )
    return low + (high - low) * rng.choice((0.1, 0.5, 1))


def _text(schema: Json, rng: random.Random, name: str) -> str:
    if name in ("prompt", "content"):
        return f"{CANARY} " + "river " * rng.choice((0, 1, 5, 50))
    if name in ("password", "api_key"):
        return SECRET
    if schema.get("pattern") == "^data:":
        return PIXEL
    if schema.get("format") == "date-time":
        return rng.choice(("2036-01-01T00:00:00Z", "2001-01-01T00:00:00Z", "yesterday"))
    word = rng.choice(WORDS)
    return word if len(word) >= schema.get("minLength", 0) else "a"
