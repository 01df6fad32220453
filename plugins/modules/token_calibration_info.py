#!/usr/bin/python
# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: token_calibration_info
short_description: Measure characters per token of a radiance endpoint at no prefill
version_added: 0.1.0
description:
  - Sends a prompt that is certainly longer than the window. The engine refuses it before any prefill and names its
    exact count, which gives the characters a token of the text that the other probes send.
  - Where no such count can be had or trusted, C(/tokenize) counts a text, and failing that, the usage of a short
    prompt that is answered. RV(calibration.method) says which, RV(calibration.prefilled_tokens) what it cost.
  - A count that was clipped at the limit, a count of characters, or a prompt that was cut never becomes a ratio.
  - It changes nothing on disk.
extends_documentation_fragment:
  - kvfleet.radiance.probe
options:
  api:
    description:
      - The endpoint whose count is wanted, C(/v1/completions) or C(/v1/chat/completions). The same text counts a little
        differently in each, since chat puts the words of its template around it. The other probes use completions.
    type: str
    choices: [completions, chat]
    default: completions
author:
  - kvfleet.radiance maintainers (@kvfleet)
"""

EXAMPLES = r"""
- name: Measure characters per token
  kvfleet.radiance.token_calibration_info:
    endpoint: http://127.0.0.1:8000
    api_key_file: /etc/radiance/flashnext.key
  register: calibrated

- name: Measure characters per token of chat
  kvfleet.radiance.token_calibration_info:
    endpoint: http://127.0.0.1:8000
    api: chat

- name: Use it for both probes
  kvfleet.radiance.boundary_probe:
    endpoint: http://127.0.0.1:8000
    api_key_file: /etc/radiance/flashnext.key
    chars_per_token: "{{ calibrated.calibration.chars_per_token }}"
"""

RETURN = r"""
calibration:
  description: What was measured. What is not known is null, and RV(calibration.exact) is then false.
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
says:
  description: How the ratio was found, or why not.
  returned: success, but for check mode
  type: str
  sample: the engine counted 529,300 tokens against a context of 200,000, before any prefill
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
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import calibration, options


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            **options.ENDPOINT,
            "api": {"type": "str", "choices": ["completions", "chat"], "default": "completions"},
        },
        mutually_exclusive=[("api_key", "api_key_file")],
        supports_check_mode=True,
    )
    options.run(module, calibration.probe)


if __name__ == "__main__":
    main()
