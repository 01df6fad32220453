#!/usr/bin/python
# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: probe_cost_info
short_description: Say what the probes of a radiance endpoint will cost
version_added: 0.1.0
description:
  - Says how many tokens the probes would send through an endpoint and about how long that takes, before any of it is
    spent.
  - The shape is the stated one. What is not stated is asked of the endpoint, which answers that from memory. No
    completion is requested, in check mode as out of it.
  - What cannot be known is null, and RV(cost.says) says why.
extends_documentation_fragment:
  - kvfleet.radiance.probe
attributes:
  check_mode:
    support: full
    description: It does the same, since it costs nothing.
options:
  probes:
    description:
      - Which probes will run.
    type: str
    choices: [none, quick, full]
    default: quick
  sequences:
    description:
      - Sequences that the boundary probe will ask at once. The default is the endpoint's own number. A whole number in
        plain decimal digits.
    type: raw
  max_model_len:
    description:
      - Window in tokens. The default is the endpoint's own. A whole number in plain decimal digits.
    type: raw
  prompt_tokens:
    description:
      - Tokens of each prompt of the rate probe. A whole number in plain decimal digits.
    type: raw
    default: 43500
  generate_tokens:
    description:
      - Tokens that each run of the rate probe generates. A whole number in plain decimal digits.
    type: raw
    default: 512
  runs:
    description:
      - Scored runs of the rate probe. A whole number in plain decimal digits.
    type: raw
    default: 2
  prefill_tps:
    description:
      - Prefill that is expected, in tokens a second. Without it, RV(cost.seconds) is null.
    type: float
  decode_tps:
    description:
      - Decode that is expected of a single stream, in tokens a second. Without it, 100 are taken.
    type: float
author:
  - kvfleet.radiance maintainers (@kvfleet)
"""

EXAMPLES = r"""
- name: Ask what a boundary and rates will cost
  kvfleet.radiance.probe_cost_info:
    endpoint: http://127.0.0.1:8000
    api_key_file: /etc/radiance/flashnext.key
    prefill_tps: 3996
  register: foreseen

- name: Show it
  ansible.builtin.debug:
    msg: "{{ foreseen.cost.says }}"
"""

RETURN = r"""
cost:
  description: What the probes will cost.
  returned: success
  type: dict
  contains:
    probes:
      description: As asked.
      type: str
      returned: always
      sample: quick
    prompt_tokens:
      description: Prompt tokens that are sent, and that go through the prefix cache; null where the shape is not known.
      type: int
      returned: always
      sample: 728700
    generated_tokens:
      description: Tokens that are generated, null where the shape is not known.
      type: int
      returned: always
      sample: 3464
    seconds:
      description: About how long it takes, null where the shape or O(prefill_tps) is not known.
      type: float
      returned: always
      sample: 205.0
    sequences:
      description: Sequences of the boundary.
      type: int
      returned: always
      sample: 3
    max_model_len:
      description: Window in tokens.
      type: int
      returned: always
      sample: 200000
    says:
      description: The cost in words, and what is not known and why.
      type: str
      returned: always
      sample: "quick: about 205 s; 728,700 prompt tokens go through the caches, 3,464 are generated"
msg:
  description: Why the module failed.
  returned: on failure
  type: str
  sample: >-
    The endpoint cannot be probed: nothing listens at http://127.0.0.1:8000/health. Is the service up, and is this its
    port?
code:
  description: A stable word for the failure, for example V(wrong_key), V(not_listening), V(key_unusable) or
    V(endpoint_unusable).
  returned: on failure
  type: str
  sample: wrong_key
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import foresight, options


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            **options.ENDPOINT,
            "probes": {"type": "str", "choices": ["none", "quick", "full"], "default": "quick"},
            "sequences": {"type": "raw"},
            "max_model_len": {"type": "raw"},
            "prompt_tokens": {"type": "raw", "default": 43500, "no_log": False},
            "generate_tokens": {"type": "raw", "default": 512, "no_log": False},
            "runs": {"type": "raw", "default": 2},
            "prefill_tps": {"type": "float"},
            "decode_tps": {"type": "float"},
        },
        mutually_exclusive=[("api_key", "api_key_file")],
        supports_check_mode=True,
    )
    asked = module.params

    def foresee(settings: options.Settings) -> dict[str, t.Any]:
        return {"cost": foresight.foresee(settings, asked["probes"], asked["prefill_tps"], asked["decode_tps"])}

    options.run(module, foresee, costly=False)


if __name__ == "__main__":
    main()
