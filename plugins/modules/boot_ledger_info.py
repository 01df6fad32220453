#!/usr/bin/python

# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: boot_ledger_info
short_description: Read what one boot of radiance printed about its memory
version_added: "0.1.0"
author:
  - kvfleet.radiance maintainers (@kvfleet)
description:
  - Reads the boot log of a radiance endpoint and returns the boot's ledger, which is the VRAM budget table, the
    settled lines, the KV plan, slab and host pool slots, sampler rows, warnings, and sums that these must satisfy.
  - Nothing is guessed. A number keeps the rounding of its print, a row that was not printed is null, and text in a form
    that is not known leaves its rows in C(ledger.missing).
  - One boot is judged alone. An older good boot of the same log never stands in for a later bad one.
  - Changes nothing, on disk or elsewhere.
options:
  source:
    description:
      - Where the text comes from.
      - V(podman) and V(docker) read the log of a container that runs, up to the listening line of its boot, whatever
        its log driver is, as long as the runtime can read it. The container's command line gives C(ledger.flags), which
        makes C(ledger.pair) exact. Of a container that was started again only the last run counts.
      - V(journald) reads what the processes of a unit that runs have printed since its last start. The command line of
        its main process gives C(ledger.flags), unless that is the client of a container runtime, which is a warning.
      - V(file) is the log that the engine's stderr goes to. It may hold any number of boots, and is read without
        holding it in memory. It may be one of podman's C(k8s-file) driver or of Kubernetes, whose lines are records.
      - V(receipt) is a boot's log up to its listening line, as it was saved when the boot became ready. To have it
        stand in only where the log has lost the boot, name its folder in O(receipts) instead.
      - V(text) is a log that was read by other means. With several boots in it, a line at which a boot begins separates
        them, as in a file.
    type: str
    choices:
      - podman
      - docker
      - journald
      - file
      - receipt
      - text
    default: podman
  path:
    description: The log or the receipt, on the target.
    type: path
  text:
    description: The log itself.
    type: str
  name:
    description:
      - For O(source=podman) and O(source=docker), the container. For O(source=journald), the unit. Each is required.
      - Root's containers are seen with become only, and those of another user as that user.
      - For any other source, a name that is returned in C(ledger.source.name).
    type: str
  scope:
    description:
      - For O(source=journald) and O(unit), whose systemd has the unit.
      - V(user) is that of the user that the task runs as. It answers this user alone, so connect as this user instead
        of becoming it.
    type: str
    choices:
      - system
      - user
    default: system
  boot:
    description:
      - Which boot of the log to read. V(-1) is the last one, V(0) the first.
      - A receipt holds one boot. A container and a unit have one, the boot that runs.
    type: int
    default: -1
  pid_file:
    description:
      - For O(source=file), the file that names the process of the service.
      - The process's command line gives C(ledger.flags), which makes C(ledger.pair) exact, and its start joins the
        fingerprint. A process that has ended, or whose stderr does not go to O(path), is not used, which is a warning.
      - The process that runs has printed the last boot, so this takes effect for O(boot=-1) only.
    type: path
  receipts:
    description:
      - The folder with the receipts of the service, on the target, which is C(receipts) in the service's folder of
        the C(state_dir) of M(kvfleet.radiance.service_switch).
      - Where the log has lost the boot that runs (it was rotated away, removed, cut, or its driver cannot be read), the
        ledger is read from the boot's receipt, with the same figures and the same fingerprint. That is a warning, and
        C(ledger.source.kind) is then V(receipt).
      - It is read from there also where the last boot of a log file (O(source=file) with O(pid_file)) is another one
        than that of the receipt. A process has one boot, so a client of the endpoint may have sent the rest.
      - A receipt counts only for the very container, the invocation of the unit, or the process (O(source=file) with
        O(pid_file)) that runs now. One that was changed or is not whole is named in a warning, and not used.
    type: path
  last_receipt:
    description:
      - Whether the newest receipt of O(receipts), which is of the last boot of the service, is read where nothing of
        it runs. RV(last_boot) then says so, C(ledger.source.kind) is V(receipt), and the endpoint is not asked, for
        another service may have its port.
      - V(crashed) does so where the unit has failed and nobody stopped it. A unit that ended by SIGTERM or SIGINT (or
        with their status, 143 or 130), or whose stop ran into its timeout, was stopped, and one that was stopped in
        order has not failed. What systemd does not tell of has not crashed. C(systemctl reset-failed) makes of a unit
        that crashed one that was stopped.
    type: str
    choices:
      - never
      - crashed
      - always
    default: never
  unit:
    description:
      - For O(last_receipt=crashed), the unit that runs the container. For O(source=journald) it is O(name).
    type: str
  with_log:
    description:
      - Also return RV(log), what the boot printed, for a report that others read.
      - It is made anonymous on the target, so that nothing else of the log leaves it. Paths, names of files, models,
        hosts and users, addresses and keys become placeholders like C(<path-1>), the same one for the same thing.
    type: bool
    default: false
  hide:
    description:
      - For O(with_log), further words to replace, such as the names that the inventory has for the host. Its own name
        and that of the user are replaced anyway.
    type: list
    elements: str
    default: []
  endpoint:
    description:
      - Base URL of the endpoint, without C(/v1), for example V(http://127.0.0.1:8000). Its C(/version) is asked for
        C(ledger.engine), since the log does not tell the engine's version.
      - What its C(/server_info) tells of the boot that serves is compared with the ledger, in the checks that begin
        with C(endpoint_). Where one of them fails the ledger is V(incomplete), and its reason, V(endpoint_differs),
        says which of the two is stale.
      - It is asked only for the last boot of a log, and only where that boot came to its listening line and the process
        that O(pid_file) names lives. An endpoint that does not answer is a warning.
    type: str
  api_key:
    description:
      - Key of the endpoint.
      - A key shorter than 8 characters or of digits alone is refused, since keeping it out of a result would mangle
        equal numbers in it.
    type: str
  api_key_file:
    description: File on the target that holds the key. The same rules hold for its content.
    type: path
  require:
    description:
      - V(complete) fails for a ledger of any other status, with the same RV(ledger) in the failure.
      - V(any) returns the ledger with its status.
    type: str
    choices:
      - complete
      - any
    default: complete
attributes:
  check_mode:
    description: Can run in check mode and return the same result.
    support: full
  diff_mode:
    description: Returns details on what has changed.
    support: none
"""

EXAMPLES = r"""
- name: Read the ledger of the boot that runs in a container
  kvfleet.radiance.boot_ledger_info:
    name: flashnext
    endpoint: http://127.0.0.1:8000
  become: true
  register: booted

- name: Read it from the journal of a unit of the user who comes in
  kvfleet.radiance.boot_ledger_info:
    source: journald
    name: flashnext.service
    scope: user
  register: booted

- name: Read it from the log of a process
  kvfleet.radiance.boot_ledger_info:
    source: file
    path: /var/log/radiance/flashnext.log
    pid_file: /run/radiance/flashnext.pid
    endpoint: http://127.0.0.1:8465
    api_key_file: /etc/radiance/flashnext.key
  register: booted

- name: Say what the pool backs
  ansible.builtin.debug:
    msg: "{{ booted.ledger.capacity.sequences }} sequences of {{ booted.ledger.capacity.tokens }} tokens"

- name: Read a boot with its log, for a report
  kvfleet.radiance.boot_ledger_info:
    name: flashnext
    with_log: true
    hide: ["{{ inventory_hostname }}"]
    require: any
  become: true
  register: collected

- name: Look at a boot that may have been refused
  kvfleet.radiance.boot_ledger_info:
    source: text
    text: "{{ lookup('ansible.builtin.file', 'boot.log') }}"
    require: any
  register: looked

- name: Say why it was refused
  ansible.builtin.debug:
    msg: "{{ looked.ledger.reason.text }}"
  when: looked.ledger.status == 'refused'
"""

RETURN = r"""
last_boot:
  description:
    - That nothing runs and RV(ledger) is that of the last boot, as O(last_receipt) asks. Of a unit that crashed with
      what systemd says of its end. A sentence without its stop.
  returned: always, null where the ledger is not of a last boot
  type: str
  sample: "flashnext.service does not run: systemd has it as failed since Mon 2026-11-30 07:05:37 UTC, with the result
    signal and signal 9, and the ledger is that of its last boot, by its receipt
    /srv/radiance/.kvfleet/flashnext/receipts/0123456789ab.log"
ledger:
  description:
    - What one boot printed, in the shape of schemas/ledger.schema.json. Also returned when the module fails.
    - A size is a dictionary of C(mib), C(plus_minus_mib) (half a unit of the last printed digit) and C(text).
  returned: always, unless the source could not be asked or an option is wrong
  type: dict
  contains:
    schema:
      description: The name and version of this shape.
      type: str
      returned: always
      sample: kvfleet.radiance/ledger/1
    status:
      description:
        - V(complete) means that every row which this kind of boot prints is there, that the sums hold, that each used
          card settled, and that the boot came to its listening line.
        - V(refused) means that the engine ended the boot with a reason of its own.
        - V(absent) means that there is no boot of this engine in what was read.
        - V(incomplete) is anything between.
      type: str
      returned: always
      sample: complete
    reason:
      description:
        - Why the ledger is not complete, as a stable C(code) and a C(text) with numbers and a way out. The cause and
          the way out of each code are in docs/ledger-reasons.md.
        - For V(refused), V(unknown_option), V(bad_command_line), V(no_device), V(model_unusable), V(vram_short),
          V(pools_over_card), V(pools_empty), V(pool_allocation_refused), V(weights_do_not_fit), V(slab_no_vram),
          V(host_pool_no_memory), V(kv_fixed_costs), V(kv_no_blocks), V(kv_pool_refused), V(chunk_geometry),
          V(cannot_bind) or V(engine_fatal).
        - For V(incomplete), V(log_cut), V(table_hidden), V(not_ready), V(rows_unreadable), V(rows_missing) or
          V(sums_off), or V(endpoint_differs) where it was held to what O(endpoint) tells.
        - For V(absent), V(log_empty), V(no_boot), V(boot_not_in_log), V(log_unreadable), V(journal_unreadable),
          V(container_absent) or V(unit_inactive).
        - Of a boot that never listened the text also says how many the log holds, how many of them in a row never
          listened, or how often the container's runtime or systemd has restarted it.
      type: dict
      returned: always, null for a complete ledger
      sample: {code: not_ready, text: The boot has not come to its listening line}
    source:
      description:
        - Where the text came from, with the container's C(log_driver), C(container_id), C(image) as its command line
          names it, and C(image_digest).
        - C(boots_seen) counts the boots of the log, and C(boot) is the one judged, from 0.
        - C(kind) is V(receipt) where the boot's receipt stood in for its log, and the rest is then that of the boot.
      type: dict
      returned: always
      sample: {kind: podman, name: flashnext, log_driver: journald, boots_seen: 1, boot: 0}
    engine:
      description: The engine's C(version), and what it is known from.
      type: dict
      returned: always
      sample: {version: null, version_from: null}
    ready:
      description: Whether this boot came to its listening line.
      type: bool
      returned: always
    essential:
      description: Whether both pools, a settled line for each used card, and the listening line are there.
      type: bool
      returned: always
    missing:
      description: Names of the rows that this kind of boot prints, and this one did not.
      type: list
      elements: str
      returned: always
      sample: [settled.card1]
    flags:
      description: The command line's options without their dashes and without secrets, where it can be read.
      type: dict
      returned: always
      sample: {vram-weights-mib: "24000", vram-kv-mib: "5120"}
    tp:
      description: How many ranks the boot had.
      type: int
      returned: always, null where nothing tells
      sample: 2
    devices:
      description: Which cards ranks ran on, and which were left alone.
      type: dict
      returned: always
      sample: {used: [0, 1], ignored: [2]}
    model:
      description: The model line.
      type: dict
      returned: always
      sample: {name: flashnext, arch: qwen4exp, quant: fp8, layers: 48, trained_context: 262144}
    budget:
      description: The budget table. C(weights) and C(kv) say V(stated) or V(derived); C(rows) has a size or null a row.
      type: dict
      returned: always
      sample: {weights: stated, kv: stated, rows: {card_total: {mib: 32624.64, plus_minus_mib: 5.12, text: 31.86 GiB}}}
    pair:
      description: The two pools in MiB a card. C(exact) when read from the flags, else as rounded in the table.
      type: dict
      returned: always
      sample: {weights_mib: 24000, kv_mib: 5120, exact: true}
    capacity:
      description: How many sequences the pool backs, each with C(tokens); the share where that is not all of them.
      type: dict
      returned: always
      sample: {sequences: 3, tokens: 200000, full: true, backing_percent: null, full_length_sessions: null}
    settled:
      description: What was free on each card after everything had been allocated, and what must stay free.
      type: list
      elements: dict
      returned: always
      sample:
        - card: 0
          free: {mib: 2058.24, plus_minus_mib: 5.12, text: 2.01 GiB}
          floor: {mib: 209.19, plus_minus_mib: 0.005, text: 209.19 MiB}
    slab:
      description: Expert slots of each rank, on the card and in the pinned host pool.
      type: list
      elements: dict
      returned: always
      sample: [{rank: 0, slots: 17548, shadow_slots: 32, pool_slots: 7580}]
    host_pool:
      description: The pinned host pool of each rank.
      type: list
      elements: dict
      returned: always
    lent:
      description: Slots that can be lent to the slab, one record a printed line.
      type: list
      elements: dict
      returned: always
      sample: [{from: kv_cache, slots: 3051}]
    kv:
      description: The KV plan of rank 0, as C(groups) and C(checkpoints).
      type: dict
      returned: always
    sampler:
      description: Sampler rows, which are sequences x (1 + speculation depth).
      type: dict
      returned: always
      sample: {rows: 9}
    wire:
      description: The wire between ranks, V(exact) or V(wht6), and how many rows a step may have to stay exact.
      type: dict
      returned: always
      sample: {mode: wht6, exact_rows: 25}
    chunk:
      description: Tokens of a prefill chunk, and whether the budget or the checkpoint interval bounds them.
      type: dict
      returned: always
      sample: {prefill_tokens: 2048, bound_by: budget}
    warnings:
      description: Warnings and errors of the boot, with a mask in place of secrets.
      type: list
      elements: dict
      returned: always
    checks:
      description:
        - Sums that the figures must satisfy, within their rounding.
        - With O(endpoint) also what it tells of the same things. Such a check has both figures in C(says), and null for
          the two numbers where it is no size.
      type: list
      elements: dict
      returned: always
      sample: [{name: unclaimed, holds: true, difference_mib: 3.34, tolerance_mib: 20.495}]
    fingerprint:
      description: A short hash that tells this boot from every other one.
      type: str
      returned: always
      sample: afc9581d7317
log:
  description:
    - The boot's lines up to the listening line without what tells whose they are. Read as a text (O(source=text)) they
      give the same figures.
    - It is null where there is no boot, and where what was read has neither the beginning nor the end of one.
  returned: with O(with_log), also when the ledger is not complete
  type: str
  sample: "I device: AQL backend, 2 device(s) [0:gfx1201 1:gfx1201]\nI model: <model-1>  arch=qwen4exp  quant=fp8"
code:
  description:
    - Why it failed, as a stable word. It is C(ledger.reason.code) where the ledger is not complete.
    - What could not be asked is V(key_unreadable), V(key_unusable), V(wrong_key), V(endpoint_unusable),
      V(pid_file_unreadable), V(process_unreadable), V(runtime_unusable), V(systemd_unreachable), V(command_missing) or
      V(command_stuck). With one of the first four RV(ledger) is what the log tells. V(log_not_anonymous) means that the
      log would not give the same figures without its names.
  returned: failure
  type: str
  sample: not_ready
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.anonymous import anonymous_log
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import boot_info
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.names import names_here, paths_in
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.reading import Reading

_OF_THE_LOG: dict[str, t.Any] = {
    "with_log": {"type": "bool", "default": False},
    "hide": {"type": "list", "elements": "str", "default": []},
}


def main() -> None:
    """Read the ledger, and ask the endpoint what a log does not tell, and whether it is of this boot."""
    module = AnsibleModule(
        argument_spec={**boot_info.ARGUMENTS, **_OF_THE_LOG}, supports_check_mode=True, **boot_info.RULES
    )

    def show(reading: Reading, key: str | None) -> str | None:
        """The boot's log without what tells whose it is."""
        return anonymous_log(
            reading.text,
            boot=module.params["boot"],
            bounded=module.params["source"] != "text",
            names=[*module.params["hide"], *names_here(), *paths_in(reading.ledger["flags"])],
            secrets=[key] if key is not None else [],
        )

    wanted = show if module.params["with_log"] else None
    found = boot_info.boot_info(module.params, module.warn, module.no_log_values.add, wanted)
    if "code" in found:
        module.fail_json(**found)
    module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
