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
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import (
    _adoption,
    _arms,
    _command_line,
    _documents,
    _drift,
    _env_text,
    _expected_rates,
    _failure,
    _files,
    _filters,
    _fleet_table,
    _handover,
    _history,
    _history_report,
    _import_file,
    _managed_text,
    _needed_files,
    _not_after,
    _plan_file,
    _probation,
    _record_lines,
    _rendered,
    _request,
    _run,
    _service,
    _summary,
    _taken_over,
    _undo,
    _verdict_report,
    _ways_back,
)


def _request_objection(request: dict[str, t.Any], services: list[dict[str, t.Any]], host: str) -> str:
    misspelt = _command_line.unheard(context.CLIARGS.get("extra_vars") or ())
    return misspelt or _request.request_objection(request, services, host)


_FILTERS: dict[str, t.Callable[..., t.Any]] = {
    "adoption_survey": _adoption.survey,
    "all_good": _summary.all_good,
    "bats_text": _rendered.bats_text,
    "boot_tried": _summary.boot_tried,
    "card_others": _handover.card_others,
    "chosen_services": _request.chosen,
    "current_files": _managed_text.current_files,
    "deadline": _not_after.deadline,
    "env_file": _managed_text.env_file,
    "env_text": _env_text.env_text,
    "env_values": _files.env_values,
    "expected_rates": _expected_rates.expected_rates,
    "failure": _failure.failure,
    "file_changes": _taken_over.file_changes,
    "file_names": _files.file_names,
    "fleet_document": _documents.fleet_document,
    "given_back": _taken_over.given_back,
    "history": _history.history,
    "history_report": _history_report.history_report,
    "host_outcome": _summary.host_outcome,
    "import_entries": _import_file.import_or_objection,
    "interrupted": _failure.interrupted,
    "managed_by": _service.managed_by,
    "measured_arms": _arms.measured_arms,
    "needed_files": _needed_files.needed_files,
    "notify_words": _summary.notify_words,
    "plan_file": _plan_file.plan_file,
    "probation_seconds": _probation.probation_seconds,
    "probe_report": _verdict_report.probe_words,
    "probed_shape": _run.probed_shape,
    "put_back": _hidden.put_back,
    "record_entries": _record_lines.record_entries,
    "record_entry": _record_lines.record_entry,
    "refused_entries": _record_lines.refused_entries,
    "rendered_run": _rendered.rendered_run,
    "request_objection": _request_objection,
    "running_pair": _drift.running_pair,
    "service_outcome": _summary.service_outcome,
    "summary": _summary.summary,
    "summary_report": _summary.summary_report,
    "to_do": _run.to_do,
    "to_undo": _undo.to_undo,
    "too_late": _not_after.too_late,
    "undone": _undo.undone,
    "unplanned": _fleet_table.unplanned,
    "verdict_report": _verdict_report.verdict_report,
    "verdicts": _plan.verdicts,
    "ways_back_images": _ways_back.images,
    "ways_back_report": _ways_back.ways_back_report,
    "with_blocks": _taken_over.with_blocks,
}


class FilterModule:
    """The filters of the collection."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {
            **{name: _filters.as_filter(function) for name, function in _FILTERS.items()},
            # As it is handed over: it reads little of much, and whole plans of a fleet are long to walk through.
            "fleet_table": _fleet_table.fleet_table,
            # The variables of a host would all be worked out.
            "outcomes": _summary.outcomes,
        }
