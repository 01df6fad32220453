# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a command line says and nothing here would hear: misspelt names, and words without a name.

Ansible takes every ``-e`` and tells of none that is not used, so a request with a slip would run as if nothing had
been asked.
"""

from __future__ import annotations

import difflib
import re
import typing as t

import yaml
from ansible.parsing.splitter import parse_kv
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import KNOWN_DTYPES
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._request import REQUEST
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._words import ENV_OF

# What single playbooks take beside it.
_OF_PLAYBOOKS = ("all", "import", "log_dir", "plan_file", "receipt")
# What a command may call otherwise: the words of the engine and its operators, and keys of a service in the inventory.
_OTHERWISE = {
    **{key.lower(): name for name, key in ENV_OF.items() if key.lower() not in REQUEST},
    **dict.fromkeys(("slab", "slab_mib"), "weights_mib"),
    "pool_mib": "kv_mib",
    **dict.fromkeys(("num_seqs", "max_seqs"), "max_num_seqs"),
    **dict.fromkeys(("model_len", "max_len"), "max_model_len"),
    "kv_dtype": "kv_cache_dtype",
    "min_gain_mib": "fill=true, or weights_mib and kv_mib",
    "host_pool": "host_pool_mib",
}
# The same, of words that are as good for something of the operator's own: only a value of the kind tells.
_BY_VALUE = {
    "weights": ("weights_mib", "[0-9][0-9,_.]*"),
    "pool": ("kv_mib", "[0-9][0-9,_.]*"),
    "kv": ("kv_mib", "[0-9][0-9,_.]*"),
    "rows": ("max_num_seqs", "[0-9]+"),
    "sequences": ("max_num_seqs", "[0-9]+"),
    "context": ("max_model_len", "[0-9][0-9,_.]*k?"),
    "depth": ("num_speculative_tokens", "[0-9]+"),
    "dtype": ("kv_cache_dtype", "|".join(KNOWN_DTYPES)),
    "pair": ("fill=true, or weights_mib and kv_mib", "fill|keep|[0-9].*"),
}


def unheard(extra_vars: t.Sequence[t.Any]) -> str:
    """What of the values of ``-e`` is meant for this collection and misses it, in a sentence; empty where nothing does.

    A name of the operator's own is left alone: only one that is nearly a name of ours, or another word for it, is taken
    for a slip.
    """
    for text in extra_vars:
        given = _given(str(text))
        words = given.pop("_raw_params", "")
        if words:
            return (
                f"-e has {words!r}, which belongs to no name. Write -e NAME=VALUE; a value with blanks wants quotes of "
                f"its own: -e \"NAME='{words}'\"."
            )
        for name in given:
            other = _other_word(name, given[name])
            if other:
                return f"-e names {name}, which nothing here takes. Write {other}, if that is meant."
            near = difflib.get_close_matches(name.lower(), REQUEST + _OF_PLAYBOOKS, n=1, cutoff=0.8)
            if near and name != near[0]:
                return f"-e names {name}, which nothing here takes. Write {near[0]}, if that is meant."
    return ""


def _other_word(name: str, value: t.Any) -> str | None:
    """What a name of a command is called here, where it is another word for it."""
    plain = name.lower().replace("-", "_")
    called, kind = _BY_VALUE.get(plain, (None, ""))
    return called if called and re.fullmatch(kind, str(value)) else _OTHERWISE.get(plain)


def _given(text: str) -> dict[str, t.Any]:
    """One value of ``-e`` as ansible-core reads it; files are the operator's own, and none is looked into."""
    if text.startswith("@"):
        return {}
    if not text.startswith(("{", "[")):
        return dict(parse_kv(text))
    try:
        given = yaml.safe_load(text)
    except yaml.YAMLError:
        return {}
    return {str(name): value for name, value in given.items()} if isinstance(given, dict) else {}
