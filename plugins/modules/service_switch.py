#!/usr/bin/python

# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: service_switch
short_description: Switch a radiance service to another pair, or leave it as it was
version_added: 0.1.0
description:
  - Restarts a radiance service on another VRAM pair in one transaction. The boot log of the new process judges it.
  - Where the new pair does not hold, the old files are put back and the old pair is started again, byte for byte as
    it was.
  - It runs detached on the target. A lost connection, a killed controller or a killed module leaves a journal in
    O(state_dir), from which the next call restores the old pair or finishes the new one.
  - Phases are lock, precheck, guard (of a unit), drain, stop, release, swap, start, ready, referee, receipt and keep.
    On the way back they are restore, start and ready, and hand_back where cards were handed over.
  - Without O(expect) it finishes a switch that was interrupted. Where none was it writes O(files), and nothing
    restarts.
options:
  service:
    description:
      - Name of the service. It names the folder below O(state_dir).
    type: str
    required: true
  manager:
    description:
      - What starts and stops the service.
      - V(process) is a plain process with a pid file, in a session of its own, its output appended to a log.
      - V(systemd) is a unit of the system. The task needs become.
      - V(systemd_user) is a unit of the user that the task runs as, who lingers (C(loginctl enable-linger)).
    type: str
    choices: [process, systemd, systemd_user]
    default: process
  unit:
    description:
      - Unit of a service that systemd manages. It is the name of the service with C(.service) where this is left out.
    type: str
  start:
    description:
      - The program that starts the service, as an argv list. It is not run through a shell.
      - For O(manager=process) it is required. Its process has to become the engine (C(exec)), because its pid is taken
        for the engine's.
      - For a unit its first item is the program that C(ExecStart) has to run. A unit that runs another one is refused,
        since the files of the switch would not matter to it.
    type: list
    elements: str
    default: []
  pid_file:
    description:
      - File on the target that holds the pid of the service. Required for O(manager=process).
    type: path
  source:
    description:
      - Where the boot log is read.
      - A plain process has a V(file). Of a unit it is the log of the container O(name) in V(podman) or V(docker), or
        what the unit wrote to V(journald). Left out it is V(file) for a process, and V(podman) for a unit.
      - While a unit boots its journal is followed, since a container that the engine's refusal ended may have been
        removed with its log.
    type: str
    choices: [file, podman, docker, journald]
  name:
    description:
      - Name of the unit's container. It is the name of the service where this is left out.
    type: str
  image:
    description:
      - Image that the new pair's container starts from, where it is known. A switch is refused with V(image_missing)
        where the runtime does not have it, or has lost the one of the container that runs.
    type: str
  path:
    description:
      - The boot log on the target. Required for O(manager=process).
    type: path
  cards:
    description:
      - Numbers of the cards that the service uses. Two services that share one cannot be switched at the same time.
    type: list
    elements: int
    default: []
  others:
    description:
      - The other services of the host that are declared on cards of this one. Those that run are in RV(others).
      - One that runs is in the way, and the switch is refused with V(cards_taken), unless its part is reserved, or this
        service runs beside it and either began after it, so that what it held is in the ledger of the plan, or asks for
        no larger pair than runs. The latter two are a warning.
    type: list
    elements: dict
    default: []
    suboptions:
      service:
        description:
          - Name of the other service.
        type: str
        required: true
      manager:
        description:
          - What starts and stops it, as O(manager).
        type: str
        choices: [process, systemd, systemd_user]
        default: process
      unit:
        description:
          - Its unit, as O(unit).
        type: str
      start:
        description:
          - What starts it, as O(start).
        type: list
        elements: str
        default: []
      pid_file:
        description:
          - Its pid file, as O(pid_file).
        type: path
      path:
        description:
          - Its boot log, as O(path).
        type: path
      source:
        description:
          - Where its boot log is read, as O(source).
        type: str
        choices: [file, podman, docker, journald]
      name:
        description:
          - Its container, as O(name).
        type: str
      cards:
        description:
          - Those of its cards that this service has too.
        type: list
        elements: int
        default: []
      endpoint:
        description:
          - Its endpoint, as O(endpoint). Its requests are waited for before it is stopped.
        type: str
      api_key_file:
        description:
          - Its key, as O(api_key_file).
        type: path
      reserved:
        description:
          - Whether its part of each of these cards is kept free for it.
        type: bool
        default: false
  handover:
    description:
      - Have the services of O(others) that are in the way give up the cards. They are drained and stopped within the
        switch, and started again where it does not hold, however it ends. Where it holds they stay stopped.
      - This service need not run then, and O(fingerprint) may be that of its newest receipt.
    type: bool
    default: false
  files:
    description:
      - Files that belong to the new pair. They are staged beside their place, and renamed into it while the service
        is stopped. Where nothing has to be restarted, those whose bytes differ are replaced all the same.
      - Without O(expect) they are written whatever runs, and nothing is restarted for them.
    type: list
    elements: dict
    default: []
    suboptions:
      content:
        description:
          - Content of the file. Give this or O(files[].src).
        type: str
      src:
        description:
          - A file on the target that has the content. Give this or O(files[].content).
        type: path
      dest:
        description:
          - Where the file goes, as an absolute path on the target. Folders that are missing are made, with mode 0755.
        type: path
        required: true
      mode:
        description:
          - Octal mode in quotes, like V("0644"). The mode of the file that is there is kept where this is left out,
            and a new file gets V("0644").
        type: raw
  needs:
    description:
      - Files of the target that a start names beside O(files). Where one is missing the switch is refused with
        V(start_unusable) before anything is stopped. Those of C(EnvironmentFile=) of a unit are looked for too.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description:
          - The absolute path.
        type: str
        required: true
      option:
        description:
          - The option that names it, for the message.
        type: str
        required: true
      stated_in:
        description:
          - Where that option is stated, for the message.
        type: str
        required: true
      read:
        description:
          - Whether it is read as a file, and not only handed on.
        type: bool
        default: false
  endpoint:
    description:
      - Base URL of the service without C(/v1), as the target reaches it. With it the switch waits for running
        requests to end, and for C(/health) to answer before it calls a boot ready.
    type: str
  api_key_file:
    description:
      - File on the target that holds the API key, for C(/load). It is read on the target only.
    type: path
  expect:
    description:
      - What the new boot has to be. C(to) is required, the pair and shape of the plan with the keys C(weights_mib),
        C(kv_mib), C(max_num_seqs), C(max_model_len), C(kv_cache_dtype) and C(num_speculative_tokens); null states
        nothing.
      - C(predictions) are those of the plan.
      - C(attempt) and C(host) go into the record.
      - C(flags) are further flags of the engine that the process must have been started with, as a dictionary without
        dashes; a process that has another value is restarted.
      - C(image) is the reference of the image that the container has to be of, and C(image_digest) its digest on the
        target; a container of another one is restarted, and a boot of another one does not hold.
      - Rows that the boot of another image than before words otherwise are named in RV(findings) and hold.
    type: dict
  fingerprint:
    description:
      - Fingerprint of the boot that the plan was made from. The switch is refused where another boot runs.
      - Of a unit that crashed it is that of the newest receipt, as M(kvfleet.radiance.boot_ledger_info) reads it with
        O(kvfleet.radiance.boot_ledger_info#module:last_receipt=crashed); the switch starts the unit.
    type: str
  drain_timeout:
    description:
      - Seconds to wait for running and waiting requests to end, asked of C(/load).
      - When they have not ended by then the switch is refused and nothing was stopped. V(0) does not wait and cuts
        them.
    type: float
    default: 60
  stop_timeout:
    description:
      - Seconds between SIGTERM and SIGKILL. For a unit, between C(systemctl stop) and SIGKILL.
    type: float
    default: 60
  release_timeout:
    description:
      - Seconds to wait until the cards have the memory of the old process back, where the process has a card open
        and the machine shows its memory.
      - A driver may give it back late. A wait that ends too early ends in a roll-back, whose boot lacks the same
        memory.
    type: float
    default: 120
  ready_timeout:
    description:
      - Seconds from the start to the listening line. Loading takes minutes on a cold disk. A boot that the engine
        refuses ends the wait at once.
    type: float
    default: 1800
  before_drain:
    description:
      - A command as an argv list that takes the service out of its gateway. When it fails nothing was stopped.
    type: list
    elements: str
    default: []
  after_ready:
    description:
      - A command as an argv list that gives the service back to its gateway. It runs whenever the service serves
        again, on whichever pair, and may run twice after an interruption. When it fails that is a warning.
    type: list
    elements: str
    default: []
  state_dir:
    description:
      - Directory on the target for the journal, the backups, the receipts and the record, in a folder for each
        service.
      - Of the receipts the last 20 are kept, and those of the last two switches on record.
    type: path
    required: true
  save_receipt:
    description:
      - Save the receipt of the boot that runs, where it has none, and change nothing else.
      - A switch saves that of its new boot itself. This is for one that was started in another way, while its log still
        has the beginning of the boot. It does not go with O(expect).
    type: bool
    default: false
  probation:
    description:
      - Seconds that the new pair of a unit is on probation. Where its engine crashes before they have passed, systemd
        puts the files of the old pair back and starts that, without any run of ours. The next call puts it on record.
      - A stop or a restart that somebody asks for is no crash. A restart of the machine changes nothing, and the time
        goes on.
      - Another switch ends it, and so does V(0), at once; the pair is confirmed then. After the time a crash changes
        nothing any more, and the next call clears up.
      - It needs O(expect), unless it is V(0), and O(manager=systemd) or V(systemd_user), with a folder of units that
        can be written.
    type: int
attributes:
  check_mode:
    description: Can run in check mode and return the changed status, the outcome, the actions and the diff without
      writing anything.
    support: full
  diff_mode:
    description: Returns what changes in each file, with the values of secrets masked.
    support: full
  action:
    description: An action plugin on the controller starts the module detached and shows its progress.
    support: full
  async:
    description: The module runs detached already.
    support: none
notes:
  - A switch whose way back could start nothing is refused with V(no_way_back) before anything stops. It is one of a
    service that somebody started by hand, on a target without the files of O(start). Install those of the pair that
    runs first. A call whose O(expect) has as C(to) what runs does that and restarts nothing.
  - A pair that somebody brought back by hand after a failure is seen by the next call, and is not restarted.
  - A SIGKILL at any instant leaves the service on one of the two pairs, or stopped with a journal that the next call
    works off.
  - While a unit is switched, a restart of the machine restores the old files before the unit starts. For that a unit
    C(kvfleet-restore-SERVICE.service) is installed once. Where it cannot be, that is a warning.
  - The referee judges essential rows only, which are the pair, the listening line, the settled memory of each card,
    full backing where it was predicted, and the shape.
seealso:
  - module: kvfleet.radiance.boot_ledger_info
  - module: kvfleet.radiance.pair_plan
author:
  - kvfleet.radiance maintainers (@kvfleet)
"""

EXAMPLES = r"""
- name: Switch to the planned pair
  kvfleet.radiance.service_switch:
    service: flashnext
    start: [/srv/radiance/scripts/serve-flashnext.sh]
    pid_file: /srv/radiance/engine.pid
    path: /srv/radiance/engine.log
    endpoint: http://127.0.0.1:8000
    state_dir: /srv/radiance/.kvfleet
    fingerprint: "{{ plan.fingerprint }}"
    expect:
      to: "{{ plan.to }}"
      predictions: "{{ plan.predictions }}"
      attempt: 0f3a9c21d7be
      host: "{{ inventory_hostname }}"
    files:
      - dest: /srv/radiance/scripts/flashnext.env
        content: "{{ lookup('ansible.builtin.template', 'service.env.j2') }}"
        mode: "0644"

- name: Finish a switch that was interrupted, if there is one
  kvfleet.radiance.service_switch:
    service: flashnext
    start: [/srv/radiance/scripts/serve-flashnext.sh]
    pid_file: /srv/radiance/engine.pid
    path: /srv/radiance/engine.log
    state_dir: /srv/radiance/.kvfleet

- name: Hand the cards of another service over to this one
  kvfleet.radiance.service_switch:
    service: nightly
    manager: systemd
    cards: [0, 1]
    others:
      - {service: flashnext, manager: systemd, cards: [0, 1], endpoint: "http://127.0.0.1:8000"}
    handover: true
    endpoint: http://127.0.0.1:8001
    state_dir: /srv/radiance/.kvfleet
    expect:
      to: "{{ plan.to }}"
  become: true

- name: Save the receipt of the boot that runs, while its log still has it
  kvfleet.radiance.service_switch:
    service: flashnext
    manager: systemd
    state_dir: /srv/radiance/.kvfleet
    save_receipt: true
  become: true

- name: Switch a service that a unit of the system runs in podman
  kvfleet.radiance.service_switch:
    service: flashnext
    manager: systemd
    start: [/srv/radiance/scripts/serve-flashnext.sh]
    endpoint: http://127.0.0.1:8000
    state_dir: /srv/radiance/.kvfleet
    fingerprint: "{{ plan.fingerprint }}"
    expect:
      to: "{{ plan.to }}"
      predictions: "{{ plan.predictions }}"
  become: true
"""

RETURN = r"""
outcome:
  description:
    - V(unchanged) when nothing had to be restarted or nothing was stopped, V(switched) when the new pair holds,
      V(rolled_back) when the old pair serves again, V(failed) when neither does. In check mode it is what the run
      would aim at.
    - The module fails with V(failed), and with V(rolled_back) unless the call only finished an interrupted switch.
  returned: always
  type: str
  sample: switched
says:
  description: What happened, in sentences.
  returned: always
  type: str
  sample: Switched to 25,844 + 5,119 after 41.2 s without service.
code:
  description:
    - Why it failed, as a stable word.
    - Refused with nothing stopped are V(option_unusable), V(expect_unusable), V(not_a_whole_number),
      V(file_unusable), V(secret_missing), V(disk_full), V(state_dir_unusable), V(switch_journal_unreadable),
      V(switch_locked), V(pid_file_unreadable), V(process_unreadable), V(foreign_process), V(port_taken),
      V(plan_is_stale), V(cards_taken), V(start_unusable), V(image_missing), V(image_moved), V(memlock_low),
      V(host_memory_short), V(no_way_back), V(api_key_file_unreadable), V(endpoint_unusable), V(load_unreadable),
      V(traffic_still_running), V(hook_failed), V(systemd_unreachable), V(runtime_unusable), V(command_missing),
      V(command_stuck), V(probation_impossible) and V(switch_probation_unreadable).
    - V(probation_failed) is a pair that crashed in its probation, so that the old one has come back since the call was
      planned. It is on record then, and nothing else was done.
    - V(switch_interrupted) is a switch that is to be finished first, of one of O(others), or with O(save_receipt) of
      this service. V(receipt_impossible) is a boot that the log does not tell whole.
    - The cause of a roll-back is one of V(still_running), V(memory_held), V(start_failed), V(start_timeout),
      V(container_in_the_way), V(engine_refused), V(engine_exited), V(never_ready), V(referee_refused),
      V(log_unreadable), V(journal_unreadable), V(interrupted) and V(unexpected), or V(file_unusable), V(disk_full),
      V(systemd_unreachable), V(runtime_unusable), V(command_missing) and V(command_stuck) as above.
    - V(start_timeout) is a unit whose own C(TimeoutStartSec) ended the boot, which tells nothing of whether the pair
      fits. V(container_in_the_way) is a runtime that did not let go of the container before, not at a second start
      either.
    - V(interrupted) with the outcome V(failed) is a module that is gone, or that was lost from sight.
  returned: failure
  type: str
  sample: referee_refused
recovered:
  description: What was done about a switch that an earlier run had left interrupted, null where there was none.
  returned: always
  type: str
phases:
  description: The phases that ran, in their order.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: Name of the phase.
      type: str
      sample: ready
    seconds:
      description: How long it took.
      type: float
      sample: 38.4
    says:
      description: How it ended.
      type: str
      sample: listening after 38.4 s, /health answers 200
actions:
  description: The commands that ran, or would, as argv lists. A signal is shown as a kill command.
  returned: always
  type: list
  elements: list
  sample: [[kill, -TERM, "4711"], [/srv/radiance/scripts/serve-flashnext.sh]]
before:
  description: The ledger of the boot that ran before, null when nothing ran.
  returned: always
  type: dict
ledger:
  description:
    - The ledger of the new pair's boot, also when it was rolled back. The running boot's where nothing was
      restarted, null where the new pair was not started.
  returned: always
  type: dict
restored:
  description: The ledger of the old pair's new boot after a roll-back, else null.
  returned: always
  type: dict
findings:
  description: What the referee judged, each with C(name), C(holds), C(asked), C(printed), C(line) and C(says).
  returned: always
  type: list
  elements: dict
downtime_seconds:
  description:
    - Seconds from the stop signal until a pair served, null where nothing was stopped or nothing serves.
    - It is null as well where an interrupted switch is finished whose pair served before this call, since nobody has
      seen from when on.
  returned: always
  type: float
receipt:
  description:
    - Path of the boot's text up to its listening line, on the target, null where none was saved. Which boot it is of
      stands beside it, in the file of the same name with C(.json).
  returned: always
  type: str
diff:
  description: What changes in each file, with C(before), C(after) and their headers.
  returned: always
  type: list
  elements: dict
records:
  description: The entries that were appended to C(records.jsonl) in the state directory.
  returned: always
  type: list
  elements: dict
probation:
  description: The probation of a pair, null where there is none.
  returned: always
  type: dict
  contains:
    state:
      description:
        - V(watching) while it lasts, V(confirmed) where it has ended, V(returned) where the engine crashed and the old
          pair came back by itself.
      type: str
      sample: watching
    until:
      description: When it ends or would have ended, UTC.
      type: str
      sample: "2026-10-13T09:30:00Z"
    seconds:
      description: How long it was to last.
      type: int
      sample: 7200
    says:
      description: A sentence.
      type: str
others:
  description: The services of O(others) that run, or ran before this switch.
  returned: always
  type: list
  elements: dict
  contains:
    service:
      description: Its name.
      type: str
      sample: nightly
    unit:
      description: Its unit, null for a plain process.
      type: str
    pid:
      description: Its process, null for a unit that waits for its next restart.
      type: int
    cards:
      description: The cards that both have.
      type: list
      elements: int
    stance:
      description:
        - V(beside) where both run and go on doing so, V(reserved) where its part is reserved, V(in_the_way) where
          neither is so, V(handed_over) where it was or would be stopped for this service.
      type: str
      sample: in_the_way
    both_run:
      description: Whether this service runs as well.
      type: bool
    says:
      description: A sentence.
      type: str
by_hand:
  description: The commands that bring the old pair back by hand, where the outcome is V(failed).
  returned: always
  type: list
  elements: str
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import Run
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.request import TIMEOUTS, read_request
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.switch import switch


def main() -> None:
    """Read the options, switch, return what was done."""
    module = AnsibleModule(
        argument_spec={
            "service": {"type": "str", "required": True},
            "manager": {"type": "str", "choices": ["process", "systemd", "systemd_user"], "default": "process"},
            "unit": {"type": "str"},
            "start": {"type": "list", "elements": "str", "default": []},
            "pid_file": {"type": "path"},
            "source": {"type": "str", "choices": ["file", "podman", "docker", "journald"]},
            "name": {"type": "str"},
            "image": {"type": "str"},
            "path": {"type": "path"},
            "cards": {"type": "list", "elements": "int", "default": []},
            "others": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "service": {"type": "str", "required": True},
                    "manager": {"type": "str", "choices": ["process", "systemd", "systemd_user"], "default": "process"},
                    "unit": {"type": "str"},
                    "start": {"type": "list", "elements": "str", "default": []},
                    "pid_file": {"type": "path"},
                    "path": {"type": "path"},
                    "source": {"type": "str", "choices": ["file", "podman", "docker", "journald"]},
                    "name": {"type": "str"},
                    "cards": {"type": "list", "elements": "int", "default": []},
                    "endpoint": {"type": "str"},
                    "api_key_file": {"type": "path", "no_log": False},
                    "reserved": {"type": "bool", "default": False},
                },
            },
            "handover": {"type": "bool", "default": False},
            "files": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "content": {"type": "str"},
                    "src": {"type": "path"},
                    "dest": {"type": "path", "required": True},
                    "mode": {"type": "raw"},
                },
                "mutually_exclusive": [("content", "src")],
                "required_one_of": [("content", "src")],
            },
            "needs": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "path": {"type": "str", "required": True},
                    "option": {"type": "str", "required": True},
                    "stated_in": {"type": "str", "required": True},
                    "read": {"type": "bool", "default": False},
                },
            },
            "endpoint": {"type": "str"},
            "api_key_file": {"type": "path", "no_log": False},
            "expect": {"type": "dict"},
            "fingerprint": {"type": "str"},
            **{name: {"type": "float", "default": seconds} for name, seconds in TIMEOUTS.items()},
            "before_drain": {"type": "list", "elements": "str", "default": []},
            "after_ready": {"type": "list", "elements": "str", "default": []},
            "state_dir": {"type": "path", "required": True},
            "save_receipt": {"type": "bool", "default": False},
            "probation": {"type": "int"},
        },
        required_if=[("manager", "process", ["start", "pid_file", "path"])],
        supports_check_mode=True,
    )
    try:
        result = switch(read_request(module.params), module.check_mode).result()
    except RadianceError as error:
        result = {**Run().result(), **error.result}
        _warn(module, result)
        module.fail_json(msg=error.text, code=error.code, **result)
    _warn(module, result)
    module.exit_json(**result)


def _warn(module: AnsibleModule, result: dict[str, t.Any]) -> None:
    for text in result.pop("warnings"):
        module.warn(text)


if __name__ == "__main__":
    main()
