# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments that Ansible takes and that nobody would hear."""

from __future__ import annotations

import pytest
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._command_line import unheard


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (["max_num_seq=2"], "-e names max_num_seq, which nothing here takes. Write max_num_seqs, if that is meant."),
        (["fill=true", "weight_mib=24000"], "Write weights_mib"),
        (["max-num-seqs=2"], "Write max_num_seqs"),
        (['{"live_session": {"sessions": 2}}'], "Write live_sessions"),
        (["recept=save"], "Write receipt"),
        (["Fill=true"], "-e names Fill, which nothing here takes. Write fill, if that is meant."),
        (["KV_MIB=5120"], "Write kv_mib"),
        (["slab=20000", "pool=9000"], "-e names slab, which nothing here takes. Write weights_mib, if that is meant."),
        (["pool_mib=6000"], "Write kv_mib"),
        (["pool=6,000"], "Write kv_mib"),
        (["context=200k"], "Write max_model_len"),
        (["VRAM_KV_MIB=6000"], "Write kv_mib"),
        (["vram-weights-mib=6000"], "Write weights_mib"),
        (["dtype=bf16"], "Write kv_cache_dtype"),
        (["rows=4"], "Write max_num_seqs"),
        (["pair=keep"], "Write fill=true, or weights_mib and kv_mib, if that is meant."),
        (["not_afer=06:00"], "Write not_after"),
        (["after_stopp=undo"], "Write after_stop"),
        (["fill"], "-e has 'fill', which belongs to no name."),
        (["backing_reason=short chats"], "-e \"NAME='chats'\"."),
    ],
)
def test_what_nobody_would_hear_is_told(extra: list[str], said: str) -> None:
    assert said in unheard(extra)


@pytest.mark.parametrize(
    "extra",
    [
        [],
        ["max_num_seqs=2 fill=true", "service=flashnext", "import=arms.yml", "all=true"],
        ["not_after=06:00 after_stop=undo"],
        ["backing_reason='short chats'", '{"accept": [{"gate": "headroom_kept", "reason": "a trial"}]}'],
        ["endpoint_probes=none", "ansible_become=true", "endpoint_serial=2", "rack=3", "@own.yml"],
        ["{no: yaml: at all", "[1, 2]"],
        ["pool=blue context=prod pair=left dtype=json rows=all"],
    ],
)
def test_what_is_heard_or_is_not_ours_is_left_alone(extra: list[str]) -> None:
    assert unheard(extra) == ""
