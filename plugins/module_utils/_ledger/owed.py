# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a boot owes: the rows that its kind of boot prints, and this one did not, or not in a form known here."""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import kv_plan, shapes, tables
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.lines import Message


def missing_rows(ledger: shapes.Ledger, log: t.Sequence[Message], headless: bool) -> list[str]:
    """Names of what is missing, in the order of the boot. ``headless``: the log holds no beginning of this boot."""
    missing = []
    ranks = range(ledger["tp"] or 1)
    if headless or not ledger["devices"]["used"]:
        missing.append("device_inventory")
    if ledger["model"]["name"] is None:
        missing.append("model")
    asked = ledger["flags"].get("tp-wire") if len(ranks) > 1 else None
    if (len(ranks) > 1 and ledger["wire"]["mode"] is None) or (asked == "wht6" and ledger["wire"]["mode"] != "wht6"):
        missing.append("wire")
    if ledger["sampler"]["rows"] is None:
        missing.append("sampler")
    rows = ledger["budget"]["rows"]
    if not any(message.text == tables.BUDGET_HEADER for message in log):
        missing.append("budget_header")
    missing += [name for name in tables.ROWS if rows[name] is None and name not in tables.OPTIONAL_ROWS]
    missing += [f"{pool}_origin" for pool in ("weights", "kv") if _unsaid(ledger["budget"], pool)]
    if ledger["capacity"]["sequences"] is None:
        missing.append("capacity")
    pooled = {row["rank"] for row in ledger["host_pool"]}
    missing += [f"pools.rank{rank}" for rank in ranks if rank not in pooled]
    if _has_experts(ledger, log):
        slabs = {row["rank"] for row in ledger["slab"]}
        missing += [f"slab.rank{rank}" for rank in ranks if rank not in slabs]
    if ledger["chunk"]["prefill_tokens"] is None:
        missing.append("chunk")
    missing += kv_plan.missing(log, ledger["kv"], ledger["flags"])
    # Every rank that lends prints it, without a tag: fewer or more lines than ranks are not all, or some twice.
    lenders = [row["from"] for row in ledger["lent"]]
    missing += [f"lent.{one}" for one in dict.fromkeys(lenders) if lenders.count(one) != len(ranks)]
    settled = {row["card"] for row in ledger["settled"]}
    missing += [f"settled.card{card}" for card in ledger["devices"]["used"] if card not in settled]
    if not ledger["devices"]["used"] and not settled:
        missing.append("settled")
    if not ledger["ready"]:
        missing.append("listening")
    return missing


def _unsaid(budget: shapes.Budget, pool: str) -> bool:
    """Whether a pool's row was printed, and its text does not say who sized it."""
    if pool == "weights":
        return budget["rows"]["vram_weights"] is not None and budget["weights"] is None
    return budget["rows"]["vram_kv"] is not None and budget["kv"] is None


def _has_experts(ledger: shapes.Ledger, log: t.Sequence[Message]) -> bool:
    """A slab is printed only where there are experts to place; a dense model prints nothing of the mover."""
    experts = ledger["budget"]["rows"]["experts"]
    return (
        (experts is not None and experts["mib"] > 0)
        or ledger["flags"].get("placement") == "expert_tiered"
        or any("mover" in message.text for message in log)
    )
