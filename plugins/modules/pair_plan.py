#!/usr/bin/python
# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pair_plan
short_description: Plan the VRAM pair of a radiance endpoint from its boot ledger
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers (@kvfleet)
description:
  - Computes the ceiling of each card, the contract of the KV pool, the pair that a request comes to, the gates that it
    must pass, what else the free VRAM could buy, and predictions that the next boot will hold or kill.
  - A pure function of its options. It reads no file, asks no endpoint and changes nothing.
  - Numbers are whole MiB or counts in plain decimal digits. Text in any other form (V(06144), V(6_144), V(1e3),
    V(6,144)) is refused and quoted. What YAML has turned into a number before cannot be told apart, so the plan echoes
    every number that it used.
attributes:
  check_mode:
    description: The same plan with and without it.
    support: full
  diff_mode:
    description: Nothing changes, so there is nothing to show.
    support: none
options:
  ledger:
    description:
      - A complete ledger, as M(kvfleet.radiance.boot_ledger_info) returns it.
    type: dict
    required: true
  running:
    description:
      - The pair and shape in force, for what the ledger does not tell. A pool inside the printed interval replaces it
        as exact. Whatever contradicts the ledger is refused as drift; what neither tells is named in a refusal.
    type: dict
    suboptions:
      weights_mib:
        description: The weight slab, MiB a card.
        type: raw
      kv_mib:
        description: The KV pool, MiB a card.
        type: raw
      max_num_seqs:
        description: Sequences at once.
        type: raw
      max_model_len:
        description: Tokens of context.
        type: raw
      kv_cache_dtype:
        description: The dtype of the KV cache.
        type: str
      num_speculative_tokens:
        description: The speculation depth.
        type: raw
  shape:
    description:
      - The wanted shape. What is left out stays as it runs.
    type: dict
    suboptions:
      max_num_seqs:
        description: Sequences at once, at least 1.
        type: raw
      max_model_len:
        description: Tokens of context, at least 1.
        type: raw
      kv_cache_dtype:
        description: V(bf16) or V(fp8), one dtype for the whole cache.
        type: str
      num_speculative_tokens:
        description: The speculation depth, 0 for none.
        type: raw
  pair:
    description:
      - V(fill) gives the pool what the contract asks for, and the rest of the ceiling to the slab.
      - V(keep) leaves the pair as it runs. A changed shape is then judged by the gates.
      - A dictionary of C(weights_mib) and C(kv_mib) states the pair. With one of the two given, the other takes the
        rest.
    type: raw
    default: fill
  min_gain_mib:
    description:
      - A fill of an unchanged shape keeps a running pair whose gates hold, and that the new one would better by fewer
        MiB of slab. V(0) fills whatever it gains.
    type: raw
    default: 256
  shape_margin_mib:
    description:
      - Left free when the shape changes. Arena and staging move by an amount that only the next boot tells.
    type: raw
    default: 64
  backing:
    description:
      - V(full) asks for a pool in which every sequence can reach the full context at once, V(one_request) for one that
        holds a single full context.
    type: str
    choices: [full, one_request]
    default: full
  backing_reason:
    description:
      - Why O(backing=one_request). Required then.
    type: str
  accept:
    description:
      - Soft gates that may fail, each with the reason.
    type: list
    elements: dict
    default: []
    suboptions:
      gate:
        description: The name of a soft gate.
        type: str
        required: true
        choices:
          - pool_meets_contract
          - pool_holds_live_sessions
          - rows_within_exact_wire
          - chunk_within_interval
          - headroom_kept
      reason:
        description: Why it is accepted.
        type: str
        required: true
  reserve_mib:
    description:
      - A personal reserve, taken off the ceiling.
    type: raw
    default: 0
  reserve_reason:
    description:
      - Why there is a reserve. Required when O(reserve_mib) is not 0; it labels the gate.
    type: str
  reserved_for_others_mib:
    description:
      - Memory that others will take on a card once the engine has booted, in absolute MiB. It is taken off the ceiling
        of that card alone, so another card may bind, and it is labelled as a personal reserve.
      - What others held before the boot is not free in its settled line, and must not be stated here again.
    type: list
    elements: dict
    default: []
    suboptions:
      card:
        description: The index of a card that the boot uses.
        type: raw
        required: true
      mib:
        description: How much of it, MiB.
        type: raw
        required: true
      reason:
        description: Who takes it. Required when O(reserved_for_others_mib[].mib) is not 0.
        type: str
  live_sessions:
    description:
      - Finished sessions whose blocks shall stay in the pool, so that their next turn does not prefill its whole
        context again. A fill takes a pool that holds them; the soft gate C(pool_holds_live_sessions) judges any other.
      - It is no part of the contract, which is what running requests need. Refused where the service runs with
        C(--no-prefix-cache).
    type: dict
    suboptions:
      sessions:
        description: How many.
        type: raw
        required: true
      tokens:
        description: The context of one. The planned max_model_len where it is left out.
        type: raw
      factor:
        description:
          - How many times its context a session holds. V(1.8) where it is left out, by the engine's guide (4.3), which
            one published pair of measurements stands behind.
        type: raw
  tp:
    description:
      - The tensor-parallel ranks that are asked for. Another number than this boot's is refused with what is known of
        it and what one boot would tell, because no ledger tells what a card has left at another tp.
    type: raw
  engine_version:
    description:
      - The engine that will be deployed, where it is not what runs. The ledger is then evidence of another stack, and
        the plan says which figures are void.
      - From V(1.3.0) on the engine splits the card itself, and a stated pair is refused.
    type: str
  image_digest:
    description:
      - The image that will be deployed, where it is not what runs.
    type: str
  host_pool_mib:
    description:
      - A new size of the pinned host pool, where the request changes it.
    type: raw
  kv_model:
    description:
      - Figures that replace the derived ones, for a model whose dimensions are not known.
    type: dict
    suboptions:
      rate_bytes_per_token:
        description: Bytes a token and rank.
        type: raw
      state_mib_per_sequence:
        description: Recurrent state a sequence and rank, MiB.
        type: raw
      checkpoint_mib:
        description: All prefix checkpoints of a rank together, MiB.
        type: raw
  arms:
    description:
      - Measured points of speed over slab size, each with one rate at least. Arms of another cache dtype, stack or
        prompt size are never mixed. Prompt sizes are one where no gap between two next to each other is more than 1 %.
    type: list
    elements: dict
    default: []
    suboptions:
      weights_mib:
        description: The slab, MiB a card.
        type: raw
        required: true
      prefill_tps:
        description: Prefill seen at it, tokens/s.
        type: raw
      decode_tps:
        description: Decode seen at it, tokens/s.
        type: raw
      prompt_tokens:
        description: How long the prompts were.
        type: raw
      kv_cache_dtype:
        description: The dtype of the KV cache.
        type: str
      stack:
        description: The stack that it was measured on. One that names another release than the engine's is left out.
        type: str
      engine_version:
        description: The release that it was measured on, as the engine told it. Goes before what O(arms[].stack) names.
        type: str
      image_digest:
        description: Digest of the image that it was measured on. An arm of another image than the plan's is left out.
        type: str
      at:
        description: When it was measured.
        type: str
  stack:
    description:
      - The stack that an arm must carry to count. Without it any may speak, still unmixed.
    type: str
  ran_before:
    description:
      - Where it is known from that this very pair and shape ran here before, such as a line of the record. A way back
        is then not refused, neither by a gate nor where no line of this boot tells the figures of its cache
        (C(kv_figures_unknown)) - what cannot be judged is said in a warning, and a gate that fails carries this text.
      - A pair for an engine that takes none is refused all the same.
    type: str
  on_gate:
    description:
      - V(fail) fails when a gate blocks, with the plan in the failure. V(report) returns the plan with the failed
        gates.
    type: str
    choices: [fail, report]
    default: fail
seealso:
  - module: kvfleet.radiance.boot_ledger_info
  - module: kvfleet.radiance.service_switch
  - plugin: kvfleet.radiance.verdicts
    plugin_type: filter
"""

EXAMPLES = r"""
- name: What would a fill of the present shape be
  kvfleet.radiance.pair_plan:
    ledger: "{{ boot.ledger }}"

- name: Four sequences in fp8, with what that costs in prefill
  kvfleet.radiance.pair_plan:
    ledger: "{{ boot.ledger }}"
    shape:
      max_num_seqs: 4
      kv_cache_dtype: fp8
    arms:
      - {weights_mib: 25600, prefill_tps: 3584, prompt_tokens: 43500, kv_cache_dtype: fp8}
      - {weights_mib: 26071, prefill_tps: 4379, prompt_tokens: 43500, kv_cache_dtype: fp8}

- name: Leave room on one card for a desktop, and in the pool for two sessions that come back
  kvfleet.radiance.pair_plan:
    ledger: "{{ boot.ledger }}"
    reserved_for_others_mib:
      - {card: 1, mib: 2048, reason: a desktop}
    live_sessions:
      sessions: 2
      tokens: 184000

- name: See which gates a stated pair fails, without failing
  kvfleet.radiance.pair_plan:
    ledger: "{{ boot.ledger }}"
    pair:
      weights_mib: 26000
      kv_mib: 5120
    on_gate: report
"""

RETURN = r"""
plan:
  description: The plan. In a failure by a gate as well.
  returned: success, or a gate blocks
  type: dict
  contains:
    schema:
      description: The name of this shape of plans.
      returned: always
      type: str
      sample: kvfleet.radiance/plan/1
    from:
      description: What runs. A pool that is only known as printed is not a whole number.
      returned: always
      type: dict
      sample: {weights_mib: 24000, kv_mib: 5120, max_num_seqs: 3, max_model_len: 200000, kv_cache_dtype: fp8,
               num_speculative_tokens: 2}
    to:
      description: What shall run. Both pools are null where the engine splits the card itself.
      returned: always
      type: dict
      sample: {weights_mib: 25844, kv_mib: 5119, max_num_seqs: 3, max_model_len: 200000, kv_cache_dtype: fp8,
               num_speculative_tokens: 2}
    changes:
      description: Names of what differs between the two, and C(host_pool_mib), C(engine_version), C(image_digest).
      returned: always
      type: list
      elements: str
      sample: [weights_mib, kv_mib]
    restart:
      description: Whether anything changes.
      returned: always
      type: bool
      sample: true
    ceiling:
      description:
        - The ceiling of the binding card before the reserves, with the summed roundings of every printed term, and the
          settled lines as printed, the binding card's first.
        - C(others_mib) is what is reserved for others on that card, C(others) all of these reserves.
        - C(says) tells why free memory is not spare, C(cross_check) holds the budget of the same boot against the
          ceiling (null where it was not printed), C(expected_warning) is the engine's own warning that will stay.
      returned: always
      type: dict
      sample: {mib: 30969.05, plus_minus_mib: 5.125, card: 0, settled_free_mib: 2058.24, floor_mib: 209.19,
               pair_sum_mib: 29120.0, reserve_mib: 0, reserve_reason: null, others_mib: 0, others: [],
               lines: ["card 0 settled at 2.01 GiB free against 209.19 MiB"], withdrawn_mib: 0.0,
               takeable_mib: 1843.925, left_mib: 0.925,
               says: "Free is not spare: card 0 settled with 2,058.24 MiB free",
               cross_check: {name: static region and late allocations, claimable_mib: 1976.32, pools_mib: 29120.0,
                             difference_mib: 127.27, plus_minus_mib: 10.245, static_region_mib: 113.19, late_mib: 14.08,
                             says: "claimable 1,976.32 + stated pools 29,120 = 31,096.32 MiB"},
               expected_warning: "Expected: the engine will warn that about 1,661.64 MiB of the card are neither"}
    contract:
      description:
        - What the pool must hold, MiB a rank, and where the figures are from. C(live_sessions) is what holds the blocks
          of finished sessions, where they are asked for. Figures are null where nothing tells them, see O(ran_before).
      returned: always
      type: dict
      sample: {needed_mib: 5062.059, pool_mib: 5119.0, spare_mib: 56.941, tokens_mib: 4284.668, state_mib: 329.391,
               checkpoint_mib: 448.0, rate_bytes_per_token: 7488.0, state_mib_per_sequence: 109.796,
               figures_from: ledger, backing: full, full_mib: 5062.059, live_sessions: null}
    gates:
      description: Each gate with the ledger line it came from, or its label.
      returned: always
      type: list
      elements: dict
      sample:
        - {name: pair_within_ceiling, holds: true, hard: true, accepted: null,
           says: "The pair 25,844 + 5,119 is 30,963 MiB; the ceiling of card 0 is 30,969.05 MiB.",
           from: "card 0 settled at 2.01 GiB free against 209.19 MiB"}
    options:
      description: What else the free VRAM could buy. C(request) is the command's arguments that get it.
      returned: always
      type: list
      elements: dict
    prices:
      description:
        - The price table, a grid of cache dtype x sequences x context around what runs, what is left beside the slab of
          the best measured arm, and a pool for one request. Each row that fits passes its own gates.
        - C(shown) marks those that a screen has room for. C(prefill) is the law's or null, C(decode) what the nearest
          arm of that dtype measured. Costs are against a fill of the present shape, slots a rank.
      returned: always
      type: list
      elements: dict
      sample:
        - {name: best_arm, shown: true, fits: true, backing: full, sequences_backed: 3.0,
           to: {weights_mib: 26071, kv_mib: 4828, max_num_seqs: 3, max_model_len: 186460, kv_cache_dtype: fp8,
                num_speculative_tokens: 2},
           prefill: {low: 4247.63, high: 4510.37}, decode: {tps: 124.1, weights_mib: 26071}, slots_lost: -166,
           lendable_slots: 2924, against_now_mib: 2071.0, against_fill_mib: 227.0, against_fill_prefill: 0.096,
           request: "-e max_model_len=186460 -e fill=true", reason: null,
           says: "A slab of 26,071 MiB was measured at 4,379 t/s"}
    predictions:
      description:
        - Numbers to be held or killed by the next boot and its probes. C(stack) and, for prefill, C(prompt_tokens) are
          there where they are known.
      returned: always
      type: list
      elements: dict
      sample:
        - {id: slab_slots.rank0, quantity: slab_slots, card: null, rank: 0, low: 18887, high: 18910, unit: slots,
           because: "1.3653 MiB a slot from (slab - statics) / slots", stack: "1.0.13"}
    law:
      description: What the arms say of the planned slab.
      returned: always
      type: dict
      sample: {status: inside, low: 3875.972, high: 4115.723,
               says: "A slab of 25,844 MiB lies between the arms 25,600 MiB and 26,071 MiB"}
    warnings:
      description: Sentences.
      returned: always
      type: list
      elements: str
    fingerprint:
      description: The ledger's fingerprint.
      returned: always
      type: str
      sample: 0123456789ab
code:
  description: A stable word for a refusal, the name of the first failed gate where a gate blocks.
  returned: failure
  type: str
  sample: pair_within_ceiling
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan

# Numbers are raw: Ansible's own int takes 06144, 6_144 and 1e3. The core reads them strictly.
_SHAPE: dict[str, t.Any] = {
    "max_num_seqs": {"type": "raw"},
    "max_model_len": {"type": "raw"},
    "kv_cache_dtype": {"type": "str"},
    "num_speculative_tokens": {"type": "raw", "no_log": False},
}


def main() -> None:
    """Read the options, plan, return the plan."""
    module = AnsibleModule(
        argument_spec={
            "ledger": {"type": "dict", "required": True},
            "running": {
                "type": "dict",
                "options": {"weights_mib": {"type": "raw"}, "kv_mib": {"type": "raw"}, **_SHAPE},
            },
            "shape": {"type": "dict", "options": _SHAPE},
            "pair": {"type": "raw", "default": "fill"},
            "min_gain_mib": {"type": "raw", "default": 256},
            "shape_margin_mib": {"type": "raw", "default": 64},
            "backing": {"type": "str", "choices": ["full", "one_request"], "default": "full"},
            "backing_reason": {"type": "str"},
            "accept": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "gate": {
                        "type": "str",
                        "required": True,
                        "choices": [
                            "pool_meets_contract",
                            "pool_holds_live_sessions",
                            "rows_within_exact_wire",
                            "chunk_within_interval",
                            "headroom_kept",
                        ],
                    },
                    "reason": {"type": "str", "required": True},
                },
            },
            "reserve_mib": {"type": "raw", "default": 0},
            "reserve_reason": {"type": "str"},
            "reserved_for_others_mib": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "card": {"type": "raw", "required": True},
                    "mib": {"type": "raw", "required": True},
                    "reason": {"type": "str"},
                },
            },
            "live_sessions": {
                "type": "dict",
                "options": {
                    "sessions": {"type": "raw", "required": True},
                    "tokens": {"type": "raw", "no_log": False},
                    "factor": {"type": "raw"},
                },
            },
            "tp": {"type": "raw"},
            "engine_version": {"type": "str"},
            "image_digest": {"type": "str"},
            "host_pool_mib": {"type": "raw"},
            "kv_model": {
                "type": "dict",
                "options": {
                    "rate_bytes_per_token": {"type": "raw", "no_log": False},
                    "state_mib_per_sequence": {"type": "raw"},
                    "checkpoint_mib": {"type": "raw"},
                },
            },
            "arms": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "weights_mib": {"type": "raw", "required": True},
                    "prefill_tps": {"type": "raw"},
                    "decode_tps": {"type": "raw"},
                    "prompt_tokens": {"type": "raw", "no_log": False},
                    "kv_cache_dtype": {"type": "str"},
                    "stack": {"type": "str"},
                    "engine_version": {"type": "str"},
                    "image_digest": {"type": "str"},
                    "at": {"type": "str"},
                },
            },
            "stack": {"type": "str"},
            "ran_before": {"type": "str"},
            "on_gate": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
        },
        supports_check_mode=True,
    )
    request = dict(module.params)
    ledger = request.pop("ledger")
    try:
        plan = make_plan(ledger, request)
    except RadianceError as error:
        module.fail_json(msg=error.text, code=error.code, **error.result)
    module.exit_json(changed=False, plan=plan)


if __name__ == "__main__":
    main()
