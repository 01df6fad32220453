# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another tp than the one that runs: what is known of it, and what only a boot would tell.

The contract is arithmetic and can be told wherever the model's dimensions are known. What a card has left is not: at
another tp each card holds another part of the model, another arena and other slots, and other cards come or go. A
ledger says nothing of that, so no pair is planned from it.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import math

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.figures import figures_at
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.request import Request
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.running import Running
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import Shape
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Ledger, mib


def refuse_other_tp(ledger: Ledger, request: Request, running: Running, shape: Shape) -> None:
    """Raises RadianceError ``tp_not_measured`` where a tp is asked for that this boot does not have."""
    runs = ledger.get("tp")
    if request.tp is None or request.tp == runs:
        return
    effective = running.effective
    figures = figures_at(
        request.tp, ledger, effective(running.shape), effective(shape), request.kv_model, request.engine_version
    )
    what = f"{shape.max_num_seqs:,} sequences of {shape.max_model_len:,} tokens ({shape.kv_cache_dtype})"
    if figures is None:
        arch = (ledger.get("model") or {}).get("arch") or "the model"
        known = (
            f"The contract is not known either: the dimensions of {arch} are not, and kv_model does not state all its "
            "figures."
        )
    else:
        by = "what is " if figures.figures_from == "kv_model" else ""
        known = (
            f"By {by}{'; '.join(figures.lines)}, {what} would need {mib(figures.needed_mib(shape))} a card, and a pool "
            f"of {mib(math.ceil(figures.filled_mib(shape, request.backing, request.live) - 1e-6))} would back all that "
            "is asked."
        )
    raise RadianceError(
        f"tp {request.tp} is asked for, and this boot ran at tp {runs or '(not printed)'}: what a card settles at, its "
        f"arena and its slots are another at each tp, and no line of this ledger tells them, so no pair is predicted. "
        f"{known} One boot at --tp {request.tp} would tell: its settled lines give the ceiling, its KV plan the "
        "contract, its mover lines the slots. tp is no part of a resize: start the service with it once, write it "
        "under flags in the inventory, and plan from that boot.",
        code="tp_not_measured",
    )
