#!/usr/bin/python
# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: service_plan
short_description: Tell what there is of a service, or plan it
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers (@kvfleet)
description:
  - Asks the host once, by M(kvfleet.radiance.service_info), reads the fleet directory on the controller, and tells what
    there is; with O(plan) also its plan, and the files that the plan would give.
  - It changes nothing and it never fails for what it finds. What stands in the way is told in RV(failure).
  - This is the one step of a plan in the role endpoint, which goes on from its result as C(endpoint_run). The role's
    README has the table of what is in it.
attributes:
  check_mode:
    description: Runs as ever.
    support: full
  diff_mode:
    description: Nothing changes, so there is no diff.
    support: none
options:
  service:
    description:
      - An item of C(endpoint_services), in the shape of schemas/service.schema.json.
    type: dict
    required: true
  services:
    description:
      - All items of C(endpoint_services), for those that are declared on the same cards.
    type: list
    elements: dict
    default: []
  fleet_dir:
    description:
      - The fleet directory, on the controller.
    type: path
    required: true
  target_dir:
    description:
      - Where the files that the service starts from are, on the host.
    type: str
    required: true
  state_dir:
    description:
      - Where M(kvfleet.radiance.service_switch) keeps its state, on the host.
    type: str
    required: true
  cross_check:
    description:
      - Whether what the boot printed is held to what its endpoint tells.
    type: bool
    default: true
  plan:
    description:
      - Whether it is planned as well.
    type: bool
    default: true
  request:
    description:
      - What a command asks, by its bare names.
    type: dict
    default: {}
  handover:
    description:
      - Whether another service is to give up its cards for this one, which does not run yet.
    type: bool
    default: false
  not_after:
    description:
      - The deadline, of P(kvfleet.radiance.deadline#filter).
    type: dict
  undo:
    description:
      - The command that undoes a resize.
    type: str
    default: ""
  timeouts:
    description:
      - Seconds of each phase and probe, where the service states none.
    type: dict
    required: true
    suboptions:
      drain:
        description: Until requests have ended.
        type: float
        required: true
      stop:
        description: Until the engine has ended.
        type: float
        required: true
      release:
        description: Until the memory of the cards is free.
        type: float
        required: true
      ready:
        description: Until the engine listens.
        type: float
        required: true
      probe:
        description: Of a probe.
        type: float
        required: true
  probes:
    description:
      - Which probes will run, where O(request) states none.
    type: str
    choices: [none, quick, full]
    default: none
  rate:
    description:
      - What the rate probe will ask.
    type: dict
    required: true
    suboptions:
      prompt_tokens:
        description: Tokens of its prompt.
        type: int
        required: true
      generate_tokens:
        description: Tokens of its answer.
        type: int
        required: true
      runs:
        description: Runs that count.
        type: int
        required: true
  adopts:
    description:
      - Whether files without our marker are read, to be taken over.
    type: bool
    default: false
  read_only:
    description:
      - Whether nothing will be changed afterwards, so that who runs on the cards is told and not refused.
    type: bool
    default: false
  settled:
    description:
      - What came of what an earlier call wanted settled, by the names of RV(unsettled). V(switch) has V(told) and
        V(returned), the sentence and the lines of the record that M(kvfleet.radiance.service_switch) has for it,
        V(others) is who runs on the cards, V(image) the result of the runtime's C(image inspect).
    type: dict
    default: {}
seealso:
  - module: kvfleet.radiance.service_info
  - module: kvfleet.radiance.pair_plan
"""

EXAMPLES = r"""
- name: Plan
  kvfleet.radiance.service_plan:
    service: "{{ endpoint_service }}"
    fleet_dir: "{{ endpoint_fleet_dir }}"
    target_dir: /srv/radiance
    state_dir: /srv/radiance/.kvfleet
    request: {fill: true}
    timeouts: {drain: 60, stop: 60, release: 120, ready: 1800, probe: 1800}
    rate: {prompt_tokens: 43500, generate_tokens: 512, runs: 2}
  register: endpoint_run
"""

RETURN = r"""
service:
  description: The service.
  returned: always
  type: dict
  sample: {name: flashnext}
failure:
  description: Why the service is left alone, as V(word), V(says) and, where it has one, V(code).
  returned: always, null where nothing stands in the way
  type: dict
  sample: {word: refused, says: The fleet directory declares another pair than runs.}
unsettled:
  description:
    - What has to be settled on the host first. V(switch) is one that was interrupted, or a pair on probation, V(others)
      who runs on its cards, V(image) one that is asked for.
  returned: always, empty where nothing is
  type: str
  sample: ""
settled:
  description: O(settled), for the next call.
  returned: where something is unsettled
  type: dict
  sample: {}
others:
  description:
    - Who is declared on its cards, for M(kvfleet.radiance.service_switch); with a plan who of them runs.
  returned: where V(others) is unsettled, and with a plan
  type: list
  elements: dict
  sample: []
asked:
  description: The image that has to be inspected.
  returned: where V(image) is unsettled
  type: str
  sample: quay.io/example/radiance:1.0.13
ledger:
  description: The boot that runs, or the last one of what does not, as M(kvfleet.radiance.boot_ledger_info) returns it.
  returned: where nothing is unsettled and nothing fails before
  type: dict
plan:
  description: As M(kvfleet.radiance.pair_plan) returns it.
  returned: with O(plan), where there is one
  type: dict
report:
  description: The lines of the plan that a person reads.
  returned: with O(plan), where there is one
  type: list
  elements: str
"""

# It runs on the controller: plugins/action/service_plan.py.
