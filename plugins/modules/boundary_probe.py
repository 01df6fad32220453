#!/usr/bin/python
# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: boundary_probe
short_description: Prove that a radiance endpoint holds all its sequences at full length at once
version_added: 0.1.0
description:
  - Sends as many prompts at once as the endpoint runs sequences, each filling the window but for what it generates.
    Three markers, each one unique word, stand first in each prompt, in its middle and at its end, and the answer must
    return them all.
  - Every sequence keeps generating until the last one has its first token, so that all hold the KV pool together.
    That they did is shown by the times of their tokens, with C(/stats) as the second witness. Times alone prove
    nothing, since what is between may hold tokens back.
  - A short prompt with markers of its own must be answered right after the long ones.
  - Where the driver shows what the cards hold, VRAM and GTT are read before, during and after. GTT that grows by more
    than 256 MiB is memory that did not fit the card.
  - O(form=full) then tries the edge of the window itself, where nothing has failed until then. A prompt of as many
    tokens as the window has must be refused with exactly that count, and one of a token less must be served. Sizing
    them costs nothing, since what is too long is refused before any prefill, and the one that is served begins as a
    prompt before it, so that the prefix cache knows nearly all of it.
  - The verdict is V(passed) only where every marker came back and all sequences overlapped. It is V(failed) for a
    lost, foreign or truncated marker, for a request that the engine failed or refused inside the window, for a spill
    into host memory, for a wrong answer after the long prompts, and where the engine's own account shows that the pool
    does not hold them all (a preemption, or a pool of fewer tokens).
    It is V(inconclusive) for everything that proves neither, such as other traffic, a full queue, or a request that
    passed O(timeout). RV(boundary.cause) names the cause in one word.
  - A marker of another prompt is answered from somebody else's cache. RV(boundary.critical) is then true, and no
    other host should be touched.
  - A verdict of V(failed) or V(inconclusive) does not fail the module. A wrong key, nothing listening, or a bad
    option does.
  - It changes nothing on disk, and it costs the endpoint's users real time.
extends_documentation_fragment:
  - kvfleet.radiance.probe
  - kvfleet.radiance.probe.prompts
options:
  sequences:
    description:
      - Sequences to hold at once. The default is the endpoint's own C(max_num_seqs). More than that is V(inconclusive).
      - A whole number in plain decimal digits.
    type: raw
  max_model_len:
    description:
      - Window to fill, in tokens. The default is the endpoint's own. A longer one is V(inconclusive).
      - A whole number in plain decimal digits.
    type: raw
  generate_tokens:
    description:
      - Tokens that each sequence generates. Decode goes on one step a prefill chunk, so that the default is
        (sequences - 1) x ceil(window / chunk) x (1 + speculation depth), rounded up to a hundred and at least 128,
        which is 600 for 3 sequences of 200,000 tokens.
      - A whole number in plain decimal digits.
    type: raw
  card_folder:
    description:
      - Folder in which the driver shows the cards as C(card0/device/mem_info_gtt_used) and so on. Where it shows none,
        RV(boundary.memory) is null.
    type: path
    default: /sys/class/drm
author:
  - kvfleet.radiance maintainers (@kvfleet)
"""

EXAMPLES = r"""
- name: Prove the shape that the endpoint serves
  kvfleet.radiance.boundary_probe:
    endpoint: http://127.0.0.1:8000
    api_key_file: /etc/radiance/flashnext.key
  register: probed

- name: Stop where the pool does not hold it
  ansible.builtin.fail:
    msg: "{{ probed.boundary.says }}"
  when: probed.boundary.verdict == "failed"

- name: Stop the whole play where an answer held somebody else's words
  ansible.builtin.fail:
    msg: "{{ probed.boundary.says }}"
  when: probed.boundary.critical
  any_errors_fatal: true

- name: Prove the edge of the window too
  kvfleet.radiance.boundary_probe:
    endpoint: http://127.0.0.1:8000
    form: full

- name: Prove three sequences of 200,000 tokens when nobody else is served
  kvfleet.radiance.boundary_probe:
    endpoint: http://127.0.0.1:8000
    sequences: 3
    max_model_len: 200000
    require_idle: true
"""

RETURN = r"""
boundary:
  description: What was proven.
  returned: success, but for check mode
  type: dict
  contains:
    asked:
      description: Sequences that were to be held at once, null where neither the options nor the endpoint say.
      type: int
      returned: always
      sample: 3
    retrieved:
      description: Sequences whose answer returned all its own markers.
      type: int
      returned: always
      sample: 3
    overlap:
      description: Sequences that held the pool at the same time, from their first token to their end.
      type: int
      returned: always
      sample: 3
    verdict:
      description: V(passed), V(failed) or V(inconclusive).
      type: str
      returned: always
      sample: passed
    cause:
      description:
        - What the verdict is named after, the gravest first, null where it is V(passed).
        - V(failed) by V(foreign_marker), V(gone), V(spill), V(engine_error), V(refused_inside), V(preempted),
          V(pool_too_small), V(truncated), V(marker_lost), V(wrong_after) or V(accepted_at_window).
        - V(inconclusive) by V(other_traffic), V(queue_full), V(loading), V(late), V(cut), V(cancelled), V(oversize),
          V(unsized), V(no_answer), V(overlap_short), V(no_witness), V(witness_differs), V(not_served) or V(no_ratio).
      type: str
      returned: always
      sample: marker_lost
    critical:
      description: Whether an answer held the marker of another prompt.
      type: bool
      returned: always
      sample: false
    says:
      description: The verdict in words, with its numbers and causes.
      type: str
      returned: always
      sample: 3 of 3 markers came back and 3 sequences of about 198,793 tokens held the pool at the same time
    replies:
      description: Each sequence's own result.
      type: list
      elements: dict
      returned: always
      contains:
        index:
          description: Number of the sequence, from 0.
          type: int
          returned: always
          sample: 0
        status:
          description: HTTP status, null where none arrived.
          type: int
          returned: always
          sample: 200
        prompt_tokens:
          description: Prompt tokens that the reply counts, null where it does not.
          type: int
          returned: always
          sample: 198790
        marker:
          description: V(found), V(lost), V(foreign), V(truncated) or V(error).
          type: str
          returned: always
          sample: found
        markers:
          description: Its own markers that the answer holds, of V(head), V(middle) and V(end).
          type: list
          elements: str
          returned: always
          sample: [head, middle, end]
        cause:
          description: As RV(boundary.cause), of this sequence alone, null where nothing stands against it.
          type: str
          returned: always
          sample: null
        says:
          description: Where the markers were, or what happened.
          type: str
          returned: always
          sample: in the answer
    witness:
      description: The most that the engine's C(/stats) showed meanwhile, null where nothing was asked.
      type: dict
      returned: always
      contains:
        samples:
          description: Readings of C(/stats).
          type: int
          returned: always
          sample: 412
        decoding:
          description: Sequences in decode.
          type: int
          returned: always
          sample: 3
        kv_tokens_used:
          description: Tokens held in the pool.
          type: int
          returned: always
          sample: 597870
        kv_tokens_total:
          description: Tokens that the pool can hold.
          type: int
          returned: always
          sample: 600268
        preempted:
          description: Sequences that the engine preempted.
          type: int
          returned: always
          sample: 0
    memory:
      description: What the cards held, null where the host shows none or nothing was asked.
      type: dict
      returned: always
      contains:
        grown_mib:
          description: The most that GTT of one counted card grew.
          type: int
          returned: always
          sample: 0
        cards:
          description: Each card that the driver shows.
          type: list
          elements: dict
          returned: always
          contains:
            card:
              description: Its name.
              type: str
              returned: always
              sample: card0
            counted:
              description: Whether it counts. Graphics with less than a quarter of the largest card's memory do not.
              type: bool
              returned: always
              sample: true
            vram_mib:
              description: Memory of the card in use, V(before), V(most) and V(after), in MiB.
              type: dict
              returned: always
              sample: {before: 32408, most: 32408, after: 32408}
            gtt_mib:
              description: Host memory in use by the card, V(before), V(most) and V(after), in MiB.
              type: dict
              returned: always
              sample: {before: 24, most: 24, after: 24}
    after:
      description: The short prompt after the long ones, null where it was not asked.
      type: dict
      returned: always
      contains:
        marker:
          description: As for a sequence.
          type: str
          returned: always
          sample: found
        markers:
          description: As for a sequence.
          type: list
          elements: str
          returned: always
          sample: [head, middle, end]
        cause:
          description: As for a sequence, with V(wrong_after) for a marker that was lost.
          type: str
          returned: always
          sample: null
        says:
          description: Where the markers were, or what happened.
          type: str
          returned: always
          sample: in the answer
    edge:
      description: The edge of the window, null where it was not tried.
      type: dict
      returned: always
      contains:
        verdict:
          description: V(passed), V(failed) or V(inconclusive).
          type: str
          returned: always
          sample: passed
        cause:
          description: As RV(boundary.cause), null where it is V(passed). A refusal inside the window is
            V(refused_inside), an error of the engine V(engine_error), a prompt of the whole window that was served
            V(accepted_at_window).
          type: str
          returned: always
          sample: null
        limit:
          description: Tokens of the window that the endpoint serves.
          type: int
          returned: always
          sample: 200000
        refused_tokens:
          description: The count with which a prompt of the whole window was refused, null where it was not.
          type: int
          returned: always
          sample: 200000
        served_tokens:
          description: Tokens of the longest prompt that was served, null where none was.
          type: int
          returned: always
          sample: 199999
        cached_tokens:
          description: Tokens of it that came from a cache.
          type: int
          returned: always
          sample: 198840
        says:
          description: What was served and refused, or what happened.
          type: str
          returned: always
          sample: 199,999 tokens are served and 200,000 are refused with their count
    max_model_len:
      description: Window that was filled, null where nothing was asked.
      type: int
      returned: always
      sample: 200000
    generate_tokens:
      description: Tokens that each sequence was to generate, null where nothing was asked.
      type: int
      returned: always
      sample: 600
calibration:
  description: The calibration that was made first, null where O(chars_per_token) was given or none was made.
  returned: success, but for check mode
  type: dict
  contains:
    chars_per_token:
      description: Characters a token of the probes' own text, null where it could not be measured.
      type: float
      returned: always
      sample: 2.7617
    tokens:
      description: Tokens that the endpoint counted.
      type: int
      returned: always
      sample: 529300
    chars:
      description: Characters of the text that was counted.
      type: int
      returned: always
      sample: 1461769
    limit:
      description: Window that the endpoint names, in tokens.
      type: int
      returned: always
      sample: 200000
    exact:
      description: Whether the count is the endpoint's own, of the whole text.
      type: bool
      returned: always
      sample: true
    method:
      description: How the count was had, V(refusal), V(tokenize) or V(usage), null where it was not.
      type: str
      returned: always
      sample: refusal
    prefilled_tokens:
      description: Prompt tokens that the endpoint had to prefill for it.
      type: int
      returned: always
      sample: 0
skipped:
  description: Present in check mode, in which nothing is sent.
  returned: in check mode
  type: bool
  sample: true
msg:
  description: Why nothing was measured, in check mode, or why the module failed.
  returned: in check mode and on failure
  type: str
  sample: "check mode: the probe sends no request, since one would cost the endpoint's users real time"
code:
  description: A stable word for the failure, for example V(wrong_key), V(not_listening), V(key_unusable) or
    V(endpoint_unusable).
  returned: on failure
  type: str
  sample: wrong_key
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import boundary, cards, options


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            **options.ENDPOINT,
            **options.PROMPTS,
            "sequences": {"type": "raw"},
            "max_model_len": {"type": "raw"},
            "generate_tokens": {"type": "raw", "no_log": False},
            "card_folder": {"type": "path", "default": cards.DRM},
        },
        mutually_exclusive=[("api_key", "api_key_file")],
        supports_check_mode=True,
    )
    options.run(module, boundary.probe)


if __name__ == "__main__":
    main()
