# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The schemas in ``schemas/``: the one source for the shape of what this collection reads and writes."""

from __future__ import annotations

import json
import pathlib
import typing as t

try:
    # Here, so that it is loaded once and not by each task of each host.
    import jsonschema
    import referencing
except ImportError:
    jsonschema = referencing = None  # type: ignore[assignment]

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError

FOLDER = pathlib.Path(__file__).parents[2] / "schemas"


def problems(value: t.Any, name: str) -> list[str]:
    """Where ``value`` differs from the schema ``name``: ``at the/path: what``; none where it fits.

    Values are not quoted: a service or a plan may hold what is not for the screen. Raises RadianceError
    ``jsonschema_missing`` or ``no_such_schema``.
    """
    if jsonschema is None:
        raise RadianceError(
            "The controller has no jsonschema. Install it beside ansible-core: python -m pip install jsonschema.",
            code="jsonschema_missing",
        )
    schemas = {path.name[: -len(".schema.json")]: path for path in sorted(FOLDER.glob("*.schema.json"))}
    if name not in schemas:
        raise RadianceError(f"There is no schema {name!r}. There are {', '.join(schemas)}.", code="no_such_schema")
    contents = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in schemas.values()}
    registry = referencing.Registry().with_resources(
        (file_name, referencing.Resource.from_contents(content)) for file_name, content in contents.items()
    )
    validator = jsonschema.Draft202012Validator(contents[schemas[name].name], registry=registry)
    found = sorted(validator.iter_errors(value), key=lambda error: [str(step) for step in error.absolute_path])
    places = [
        f"at {'/'.join(str(step) for step in error.absolute_path) or 'the top'}: {_words(error)}" for error in found
    ]
    return list(dict.fromkeys(places))


def _words(error: t.Any) -> str:
    """What is wrong, in the schema's terms; a rule that holds only under a condition says why.

    The ``title`` of what has a pattern or a range says in words what fits.
    """
    rule, wanted = error.validator, error.validator_value
    conditional = {"then", "else"} & set(error.absolute_schema_path)
    reason = error.schema.get("description", "") if conditional else ""
    if rule == "not":
        return reason or "must not be there"
    said = f"does not keep the schema's {rule}"
    if rule == "required":
        said = f"missing {', '.join(name for name in wanted if name not in error.instance)}"
    elif rule == "additionalProperties":
        known = set(error.schema.get("properties", {}))
        said = f"unknown {', '.join(sorted(set(error.instance) - known))}"
    elif rule == "type":
        said = f"must be {' or '.join(wanted) if isinstance(wanted, list) else wanted}"
    elif rule in ("pattern", "minimum", "maximum") and "title" in error.schema:
        said = f"must be {error.schema['title']}"
    elif rule in ("minimum", "maximum"):
        said = f"must be at {'least' if rule == 'minimum' else 'most'} {wanted:,}"
    elif rule in ("const", "enum"):
        said = f"must be {wanted if rule == 'const' else ' or '.join(str(item) for item in wanted)}"
    return f"{said} ({reason})" if reason else said
