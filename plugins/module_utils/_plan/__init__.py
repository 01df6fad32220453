# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a ledger and a request to a plan, and from a plan's predictions to verdicts. Pure: no I/O.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.plan import attempt_id, make_plan
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.score import score
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.verdicts import verdicts

__all__ = ["attempt_id", "make_plan", "score", "verdicts"]
