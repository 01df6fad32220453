# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the endpoint tells of the engine: its version, which no log tells, and what it serves."""

from __future__ import annotations

import re
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import client
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.facts import QUICK_SECONDS, refuse_key

_LIMIT = 1024 * 1024
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


def ask_server_info(endpoint: str, api_key: str | None = None) -> tuple[dict[str, t.Any] | None, float, str]:
    """What ``/server_info`` tells and when, in seconds since the epoch; or None, 0 and a sentence that says why.

    Ask for the version first: a key is refused there. Raises RadianceError ``endpoint_unusable``.
    """
    reply = client.get(endpoint, "/server_info", timeout=QUICK_SECONDS, api_key=api_key, limit=_LIMIT)
    said = reply.json() if reply.ok else None
    if isinstance(said, dict) and isinstance(said.get("server"), dict) and isinstance(said.get("engine"), dict):
        return said, time.time(), ""
    why = reply.fault.text if reply.fault else "" if reply.ok else f"it answered {reply.status}"
    why = why or "its answer has not the form that is known here"
    return None, 0.0, f"{endpoint} did not tell what it serves ({why}), so the ledger was not compared with it."
