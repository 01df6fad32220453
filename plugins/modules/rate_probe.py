#!/usr/bin/python
# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: rate_probe
short_description: Measure cold prefill and decode rates of a radiance endpoint
version_added: 0.1.0
description:
  - Sends one unscored warm-up and then O(runs) prompts of O(prompt_tokens) tokens, one after the other, each with
    other text and a random word at its head, so that no prefix cache can know it.
  - Prefill is the prompt's tokens over the time to the first token, decode the further tokens over the time from the
    first to the last. Tokens are those of the reply's usage, never its chunks, and reasoning counts as text.
  - The server's own timings are returned where the wall clock bears them out, the wall clock's figure where there are
    no timings, and null where the two contradict each other. It bears them out within 5 percent, or half a second for
    what sending, parsing and tokenizing a prompt add and a fifth of one between first and last token, less from one
    second of prefill and two of decode on, and never as much as the claimed time itself. The wall clock alone tells
    nothing where tokens came in bursts, or after the engine had ended.
  - O(form=full) then asks the second turn of the last prompt, whose head the prefix cache knows, and after it as many
    later turns at once as the endpoint runs sequences, at most 8, for the decode rate of each of them. Only the stretch
    counts in which all of them decode.
  - The verdict is V(passed) where every run was measured, cold (no cached token), with at least 128 tokens decoded and
    no other traffic, in the full form its further parts too, and no rate is suspect. It is V(inconclusive) otherwise. A
    rate is never a reason for V(failed).
  - Other traffic is what C(/stats) shows, and what C(/metrics) counts beside the probe's own tokens. A reply that
    counts other tokens than were sent or asked for is no measurement, nor are two runs whose median is the rate of
    neither.
  - A verdict of V(inconclusive) does not fail the module. A wrong key, nothing listening, or a bad option does.
  - It changes nothing on disk, and it costs the endpoint's users real time.
extends_documentation_fragment:
  - kvfleet.radiance.probe
  - kvfleet.radiance.probe.prompts
options:
  prompt_tokens:
    description:
      - Tokens of each prompt. A whole number in plain decimal digits.
    type: raw
    default: 43500
  generate_tokens:
    description:
      - Tokens to generate in each run. Fewer than 128 give no decode rate. A whole number in plain decimal digits.
    type: raw
    default: 512
  runs:
    description:
      - Scored runs. A whole number in plain decimal digits.
    type: raw
    default: 2
  most_prefill_tps:
    description:
      - Prefill of the fastest arm that is known, in tokens a second. A run that is more than half faster again is
        suspect, and never V(passed). A cache that does not show itself looks like this.
      - Without it, no prefill is too fast.
    type: float
  most_decode_tps:
    description:
      - Decode of the fastest arm of the same speculation depth that is known, in tokens a second. A run that is more
        than half faster again is suspect, and never V(passed).
      - Without it, decode is bounded only by what the steps that the engine counts can yield at its depth.
    type: float
author:
  - kvfleet.radiance maintainers (@kvfleet)
"""

EXAMPLES = r"""
- name: Measure the rates that the slab law is made of
  kvfleet.radiance.rate_probe:
    endpoint: http://127.0.0.1:8000
    api_key_file: /etc/radiance/flashnext.key
    most_prefill_tps: 4379
  register: probed

- name: Show them
  ansible.builtin.debug:
    msg: "{{ probed.rates.says }}"

- name: Measure the second turn and several streams at once too
  kvfleet.radiance.rate_probe:
    endpoint: http://127.0.0.1:8000
    form: full
"""

RETURN = r"""
rates:
  description: What was measured, medians over the scored runs. What was not measured is null.
  returned: success, but for check mode
  type: dict
  contains:
    prefill_tps:
      description: Cold prefill, prompt tokens a second.
      type: float
      returned: always
      sample: 3996.4
    decode_tps:
      description: Decode of a single stream, tokens a second, the first token apart.
      type: float
      returned: always
      sample: 121.3
    prefill_spread:
      description: Distance of the fastest run from the slowest, as a part of the median, null for fewer than two.
      type: float
      returned: always
      sample: 0.012
    decode_spread:
      description: The same of decode.
      type: float
      returned: always
      sample: 0.004
    prompt_tokens:
      description: Prompt tokens a run, as the replies count them.
      type: int
      returned: always
      sample: 43489
    generated_tokens:
      description: Generated tokens a run, as the replies count them.
      type: int
      returned: always
      sample: 512
    cached_tokens:
      description: The most prompt tokens of a run that came from a cache. More than 0 is not cold.
      type: int
      returned: always
      sample: 0
    concurrent_decode_tps:
      description: Decode of each of several streams at once, the median over them, null where it was not measured.
      type: float
      returned: always
      sample: 79.9
    draft_acceptance:
      description: Part of the draft tokens that the engine accepted, of its own account, null where it gives none.
      type: float
      returned: always
      sample: 0.71
    method:
      description: V(timings) for the server's own figures borne out by the wall clock, V(wall_clock), or V(mixed),
        null where nothing was measured.
      type: str
      returned: always
      sample: timings
    suspect:
      description: Whether a run was faster than O(most_prefill_tps) allows.
      type: bool
      returned: always
      sample: false
    verdict:
      description: V(passed) or V(inconclusive).
      type: str
      returned: always
      sample: passed
    says:
      description: The rates in words, and what was not measured and why.
      type: str
      returned: always
      sample: prefill 3,996 tokens/s over 43,489 tokens, decode 121.3 tokens/s over 512 tokens at 71 % of drafts
        accepted, median of 2 runs, spread 1.2 % and 0.4 %
    runs:
      description: Each scored run.
      type: list
      elements: dict
      returned: always
      contains:
        prompt_tokens:
          description: Prompt tokens as the reply counts them.
          type: int
          returned: always
          sample: 43489
        generated_tokens:
          description: Generated tokens as the reply counts them.
          type: int
          returned: always
          sample: 512
        cached_tokens:
          description: Prompt tokens that came from a cache.
          type: int
          returned: always
          sample: 0
        ttft_seconds:
          description: Seconds from the start of the request to its first token, by the wall clock.
          type: float
          returned: always
          sample: 10.91
        prefill_tps:
          description: Prefill of this run.
          type: float
          returned: always
          sample: 3996.4
        decode_tps:
          description: Decode of this run.
          type: float
          returned: always
          sample: 121.3
        draft_acceptance:
          description: The same of this run.
          type: float
          returned: always
          sample: 0.71
        suspect:
          description: As for all runs together.
          type: bool
          returned: always
          sample: false
        method:
          description: As for all runs together.
          type: str
          returned: always
          sample: timings
        says:
          description: What was not measured and why, null where all was.
          type: str
          returned: always
          sample: null
    second_turn:
      description: The second turn of the last prompt, null in the quick form and where a run failed.
      type: dict
      returned: always
      contains:
        measured:
          description: Whether all of it was measured.
          type: bool
          returned: always
          sample: true
        prompt_tokens:
          description: Prompt tokens as the reply counts them.
          type: int
          returned: always
          sample: 44088
        cached_tokens:
          description: Prompt tokens that came from the cache.
          type: int
          returned: always
          sample: 43524
        effective:
          description: Whether the prefix cache knew any of it, null where the reply does not say.
          type: bool
          returned: always
          sample: true
        ttft_seconds:
          description: Seconds from the start of the request to its first token, by the wall clock.
          type: float
          returned: always
          sample: 0.31
        decode_tps:
          description: Decode of this turn.
          type: float
          returned: always
          sample: 120.7
        draft_acceptance:
          description: The same of this turn.
          type: float
          returned: always
          sample: 0.71
        says:
          description: What of it came from the cache, or what was not measured and why.
          type: str
          returned: always
          sample: 44,088 tokens, 43,524 of it came from the cache; first token after 0.31 s, then 120.7 tokens/s
            at 71 % of drafts accepted
    concurrent:
      description: Several streams at once, null in the quick form, where a run failed, and where the endpoint runs one
        sequence at a time.
      type: dict
      returned: always
      contains:
        measured:
          description: Whether it was measured.
          type: bool
          returned: always
          sample: true
        streams:
          description: Streams that were asked at once.
          type: int
          returned: always
          sample: 3
        decode_tps:
          description: Decode of each stream while all of them decoded, the median over them.
          type: float
          returned: always
          sample: 79.9
        least_tps:
          description: Decode of the slowest stream.
          type: float
          returned: always
          sample: 79.7
        most_tps:
          description: Decode of the fastest stream.
          type: float
          returned: always
          sample: 80.2
        tokens:
          description: Tokens that each stream at least decoded meanwhile.
          type: int
          returned: always
          sample: 504
        draft_acceptance:
          description: The same of these streams together.
          type: float
          returned: always
          sample: 0.71
        says:
          description: The rate in words, or what was not measured and why.
          type: str
          returned: always
          sample: 79.9 tokens/s for each of 3 streams at 71 % of drafts accepted
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
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import options, rates


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            **options.ENDPOINT,
            **options.PROMPTS,
            "prompt_tokens": {"type": "raw", "default": 43500, "no_log": False},
            "generate_tokens": {"type": "raw", "default": 512, "no_log": False},
            "runs": {"type": "raw", "default": 2},
            "most_prefill_tps": {"type": "float"},
            "most_decode_tps": {"type": "float"},
        },
        mutually_exclusive=[("api_key", "api_key_file")],
        supports_check_mode=True,
    )
    options.run(module, rates.probe)


if __name__ == "__main__":
    main()
