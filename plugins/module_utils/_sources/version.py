# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine's version, which its log does not tell: asked of the endpoint."""

from __future__ import annotations

import re

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import client
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.facts import QUICK_SECONDS, refuse_key

_LIMIT = 64 * 1024
_VERSION = re.compile(r"^[0-9A-Za-z.+_-]{1,64}$")


def ask_version(endpoint: str, api_key: str | None = None) -> tuple[str | None, str]:
    """The version that ``/version`` names, or None and a sentence that says why there is none.

    Raises RadianceError ``endpoint_unusable`` and ``wrong_key``.
    """
    reply = client.get(endpoint, "/version", timeout=QUICK_SECONDS, api_key=api_key, limit=_LIMIT)
    refuse_key(reply.status)
    said = reply.json() if reply.ok else None
    if isinstance(said, dict):
        version = said.get("version")
        if said.get("engine") == "radiance" and isinstance(version, str) and _VERSION.match(version):
            return version, ""
        return None, f"What answers at {endpoint} is not radiance, so the engine's version is not known."
    why = reply.fault.text if reply.fault else f"it answered {reply.status}"
    return None, f"{endpoint} did not tell the engine's version: {why}."
