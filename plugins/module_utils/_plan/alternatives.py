# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""One alternative to what runs: its figures, its fill, and the command's arguments that get it.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import json
import re

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.figures import kv_figures
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.pairing import fill_pair
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.request import NO_KV_MODEL
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import Shape
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.situation import Situation


def candidate_of(now: Situation, shape: Shape, wanted: Shape, backing: str | None = None) -> Situation | None:
    """What runs (``now``) with a fill of ``shape``; None where its figures are not known or it has no room.

    A kv_model of the request speaks for the cache of ``wanted`` alone. ``backing`` is the request's where not given.
    """
    found = situated(now, shape, wanted, backing)
    return None if found is None else filled_of(found)


def filled_of(candidate: Situation) -> Situation | None:
    """The candidate with the pair of a fill; None where it has no room."""
    try:
        return candidate._replace(pair=fill_pair(candidate, margin_mib=candidate.fill_margin_mib))
    except RadianceError:
        return None


def situated(now: Situation, shape: Shape, wanted: Shape, backing: str | None = None) -> Situation | None:
    """The same without a pair; None where the figures are not known."""
    effective = now.running.effective
    model = now.request.kv_model if effective(shape).same_cache(effective(wanted)) else NO_KV_MODEL
    try:
        figures, _warnings = kv_figures(
            now.ledger,
            effective(now.running.shape),
            effective(shape),
            model,
            now.request.engine_version,
            now.running.kv,
        )
    except RadianceError:
        return None
    request = now.request if backing is None else now.request._replace(backing=backing)
    return now._replace(shape=shape, figures=figures, request=request)


def arguments(running: Shape, shape: Shape, weights_mib: int | None = None, backing: str | None = None) -> str:
    """The arguments that ask for ``shape``: a fill, or a slab of ``weights_mib`` with the rest to the pool."""
    words = [
        f"-e {name}={getattr(shape, name)}" for name in Shape._fields if getattr(shape, name) != getattr(running, name)
    ]
    words.append("-e fill=true" if weights_mib is None else f"-e weights_mib={weights_mib}")
    if backing is not None:
        words.append(f"-e backing={backing}")
    return " ".join(words)


def reason_argument(reason: str) -> str:
    """The argument that gives this ``backing_reason``; as JSON where Ansible would end a bare value at a blank."""
    if re.match(r"^[A-Za-z0-9._:/@%+=,-]+$", reason):
        return f"-e backing_reason={reason}"
    given = json.dumps({"backing_reason": reason}, ensure_ascii=False)
    return "-e '" + given.replace("'", "'\\''") + "'"
