# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every filter in one file: Ansible looks through each file of the folder for each filter that a template names.

What a filter is for stands in the NAME.yml beside this file, where ansible-doc finds it.
"""

from __future__ import annotations

import typing as t

from ansible import context
from ansible_collections.kvfleet.radiance.plugins.module_utils import _hidden, _plan
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import (
    _adoption,
    _arms,
    _command_line,
    _container_notes,
    _documents,
    _drift,
    _env_text,
    _expected_rates,
    _files,
    _filters,
    _fleet_table,
    _gates,
    _handover,
    _history,
    _history_report,
    _image,
    _import_file,
    _managed_text,
    _needed_files,
    _not_after,
    _plan_file,
    _plan_report,
    _probation,
    _request,
    _run,
    _service,
    _summary,
    _taken_over,
    _undo,
    _verdict_report,
    _ways_back,
)


def _pair_plan(ledger: dict[str, t.Any], request: dict[str, t.Any]) -> dict[str, t.Any]:
    options = {name: value for name, value in request.items() if name != "image"}
    try:
        return {"plan": _plan.make_plan(ledger, options)}
    except RadianceError as error:
        return {"msg": error.text, "code": error.code, **error.result}


def _request_objection(request: dict[str, t.Any], services: list[dict[str, t.Any]], host: str) -> str:
    misspelt = _command_line.unheard(context.CLIARGS.get("extra_vars") or ())
    return misspelt or _request.request_objection(request, services, host)


_FILTERS: dict[str, t.Callable[..., t.Any]] = {
    "adoption_survey": _adoption.survey,
    "all_good": _summary.all_good,
    "bats_gates": _gates.bats_gates,
    "boot_tried": _summary.boot_tried,
    "card_others": _handover.card_others,
    "chosen_services": _request.chosen,
    "command_objection": _image.command_objection,
    "container_notes": _container_notes.container_notes,
    "current_files": _managed_text.current_files,
    "deadline": _not_after.deadline,
    "declared_flags": _files.declared_flags,
    "drift": _drift.drift,
    "engine_command": _service.engine_command,
    "env_file": _managed_text.env_file,
    "env_keys": _files.env_keys,
    "env_text": _env_text.env_text,
    "env_values": _files.env_values,
    "expected_rates": _expected_rates.expected_rates,
    "failure": _summary.failure,
    "file_changes": _taken_over.file_changes,
    "file_gates": _gates.file_gates,
    "file_names": _files.file_names,
    "file_text": _managed_text.file_text,
    "fits_words": _not_after.fits_words,
    "fleet_document": _documents.fleet_document,
    "fleet_table": _fleet_table.fleet_table,
    "given_back": _taken_over.given_back,
    "gone_words": _service.gone_words,
    "handover_notes": _handover.handover_notes,
    "handover_objection": _handover.handover_objection,
    "history": _history.history,
    "history_report": _history_report.history_report,
    "host_outcome": _summary.host_outcome,
    "image_choice": _image.image_choice,
    "image_objection": _image.image_objection,
    "import_entries": _import_file.import_or_objection,
    "known_engine": _image.known_engine,
    "leftover_command": _service.leftover_command,
    "managed_by": _service.managed_by,
    "measured_arms": _arms.measured_arms,
    "needed_files": _needed_files.needed_files,
    "notify_words": _summary.notify_words,
    "pair_plan": _pair_plan,
    "pair_request": _request.pair_request,
    "plan_file": _plan_file.plan_file,
    "plan_objection": _plan_file.plan_objection,
    "plan_report": _plan_report.plan_report,
    "put_back": _hidden.put_back,
    "probation_notes": _probation.probation_notes,
    "probation_seconds": _probation.probation_seconds,
    "probe_report": _verdict_report.probe_words,
    "probed_shape": _run.probed_shape,
    "record_entries": _history.record_entries,
    "record_entry": _history.record_entry,
    "request_objection": _request_objection,
    "reviewed_plan": _plan_file.reviewed_plan,
    "running_pair": _drift.running_pair,
    "service_outcome": _summary.service_outcome,
    "summary": _summary.summary,
    "summary_report": _summary.summary_report,
    "time_needed": _not_after.time_needed,
    "to_do": _run.to_do,
    "to_undo": _undo.to_undo,
    "too_late": _not_after.too_late,
    "undone": _undo.undone,
    "unplanned": _fleet_table.unplanned,
    "unstated_objection": _managed_text.unstated_objection,
    "verdict_report": _verdict_report.verdict_report,
    "verdicts": _plan.verdicts,
    "way_back": _history.way_back_or_objection,
    "ways_back_images": _ways_back.images,
    "ways_back_report": _ways_back.ways_back_report,
    "with_blocks": _taken_over.with_blocks,
}


class FilterModule:
    """The filters of the collection."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {name: _filters.as_filter(function) for name, function in _FILTERS.items()}
