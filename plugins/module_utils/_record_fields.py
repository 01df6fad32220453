# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of a line of the record: of every kind of line, and which types each may have.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

Types = t.Mapping[str, tuple[type, ...]]

_NULL = type(None)
_NUMBER: tuple[type, ...] = (int, float)
# The own fields of each kind and the types that each may have. All of them are there on every line of that kind.
FIELDS: t.Mapping[str, Types] = {
    "planned": {"plan": (dict,), "request": (dict,)},
    "switched": {
        "to": (dict,),
        "downtime_seconds": (*_NUMBER, _NULL),
        "receipt": (str, _NULL),
        "ledger": (dict, _NULL),
    },
    "rolled_back": {
        "to": (dict, _NULL),
        "tried": (dict,),
        "phase": (str,),
        "says": (str,),
        "downtime_seconds": (*_NUMBER, _NULL),
        "serving": (bool,),
    },
    # Refused, or failed, before anything was stopped: nothing changed.
    "refused": {"phase": (str,), "says": (str,)},
    "probed": {"calibration": (dict, _NULL), "boundary": (dict, _NULL), "rates": (dict, _NULL)},
    "verdict": {
        "prediction": (str,),
        "quantity": (str,),
        "verdict": (str,),
        "measured": (*_NUMBER, str, _NULL),
        "says": (str,),
    },
    "rollback": {"to": (dict,), "returns_to": (str,), "says": (str,)},
    "adopted": {"to": (dict,), "image": (str, _NULL), "fingerprint": (str,), "files": (list,), "env_names": (dict,)},
    "arm": {
        "weights_mib": (int,),
        "weights_plus_minus_mib": _NUMBER,
        "prefill_tps": (*_NUMBER, _NULL),
        "decode_tps": (*_NUMBER, _NULL),
        "prefill_spread": (*_NUMBER, _NULL),
        "decode_spread": (*_NUMBER, _NULL),
        "prompt_tokens": (int, _NULL),
        "generated_tokens": (int, _NULL),
        "kv_cache_dtype": (str, _NULL),
        "num_speculative_tokens": (int, _NULL),
        "draft_acceptance": (*_NUMBER, _NULL),
        "stack": (str, _NULL),
        "engine_version": (str, _NULL),
        "image_digest": (str, _NULL),
        "source": (str,),
        "measured_at": (str, _NULL),
    },
    # What somebody had predicted and judged before this record began.
    "past_verdict": {
        "quantity": (str,),
        "low": _NUMBER,
        "high": _NUMBER,
        "unit": (str, _NULL),
        "measured": (*_NUMBER, _NULL),
        "verdict": (str,),
        "says": (str,),
        "judged_at": (str, _NULL),
    },
}
# Fields that a line may also have. ``image`` is the reference that the line put in force, None for a service without a
# container; lines that were written before there was one lack it.
_IMAGE: Types = {"image": (str, _NULL)}
# The services that were stopped for it, and on a line of a roll-back started again.
_HANDOVER: Types = {"handed_over": (list,)}
OPTIONAL: t.Mapping[str, Types] = {
    "planned": {**_IMAGE, "image_before": (str, _NULL), "image_digest_before": (str, _NULL)},
    "switched": {**_IMAGE, **_HANDOVER},
    "rolled_back": {**_IMAGE, **_HANDOVER},
    # By how much the print rounds what was measured; older lines lack it.
    "verdict": {"plus_minus": _NUMBER},
    "rollback": _IMAGE,
}
# Of every line.
COMMON: Types = {
    "schema": (str,),
    "id": (str,),
    "at": (str,),
    "host": (str,),
    "service": (str,),
    "kind": (str,),
    "attempt": (str, _NULL),
}
