# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks the host of a service once, reads the fleet directory, and tells what there is, or plans it.

All in one task: what is read never passes through a template, where Ansible would look at each value of it again.
"""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import (
    _files,
    _fleet_dir,
    _handover,
    _known,
    _look,
    _planned,
    _schemas,
    _summary,
)
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import plain

_MODULE = "kvfleet.radiance.service_info"
_ARGUMENTS: dict[str, t.Any] = {
    "service": {"type": "dict", "required": True},
    "services": {"type": "list", "elements": "dict", "default": []},
    "fleet_dir": {"type": "path", "required": True},
    "target_dir": {"type": "str", "required": True},
    "state_dir": {"type": "str", "required": True},
    "cross_check": {"type": "bool", "default": True},
    "request": {"type": "dict"},
    "about": {"type": "dict", "required": True},
    "settled": {"type": "dict", "default": {}},
}


class ActionModule(ActionBase):  # type: ignore[misc]
    """See the documentation beside the modules."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """``endpoint_run`` as the role keeps it; with ``failure``, which the role ends with."""
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        given = plain(self.validate_argument_spec(_ARGUMENTS)[1])
        self._warnings: list[str] = []
        run = {"service": given["service"], "failure": None, "unsettled": "", "asked": None}
        try:
            run |= self._run(given, task_vars or {})
        except RadianceError as error:
            run["failure"] = _summary.failure({"msg": error.text, "code": error.code})
        return {**result, **run, "changed": False, "warnings": self._warnings}

    def _run(self, given: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        service, about, settled = given["service"], given["about"], given["settled"]
        request: dict[str, t.Any] | None = given["request"]
        wrong = _schemas.problems(service, "service")
        if wrong:
            raise RadianceError(f"This is no service: {'; '.join(wrong)}.", code="service_unfit")
        asked = request or {}
        reserved = asked.get("reserved_for_others_mib") or service.get("reserved_for_others_mib") or []
        others = _handover.card_others(service, given["services"], about["host"], given["target_dir"], reserved)
        answer = self._ask(given, others, task_vars)
        failure = _look.no_answer(answer, given["state_dir"])
        if failure:
            return {"failure": failure}
        if _look.left(answer) and "told" not in settled:
            return {"unsettled": "switch", "settled": settled}
        boot = answer["boot"]
        failure = _look.not_serving(service, boot, about["serve_path"], others, about["handover"])
        if failure:
            return {"failure": failure}
        if "code" in boot:
            self._warnings.append(f"{boot['msg']} The ledger of {service['name']} was not held to its endpoint.")
        if others and "others" not in settled:
            return {"unsettled": "others", "settled": settled}
        read = {**self._fleet(given, answer), "boot": boot, "there": answer, "others": settled.get("others", [])}
        if request is None:
            return _known.known_run(service, read, about)
        about = {
            **about,
            "told": settled.get("told", ""),
            "uncommitted": bool(_fleet_dir.uncommitted(given["fleet_dir"])),
        }
        return {**_planned.planned_run(service, read, request, about, settled.get("image")), "settled": settled}

    def _ask(
        self, given: dict[str, t.Any], others: list[dict[str, t.Any]], task_vars: dict[str, t.Any]
    ) -> dict[str, t.Any]:
        # A service that gets the cards of another one does not run yet: it is planned from its last boot. What crashed
        # is planned from there too, for nobody wanted it to end.
        last = "always" if given["about"]["handover"] else "never" if given["request"] is None else "crashed"
        folders = [given[name] for name in ("target_dir", "state_dir")]
        question = _look.question(
            given["service"], given["about"]["host"], *folders, others, given["cross_check"], last
        )
        try:
            answer: dict[str, t.Any] = self._execute_module(_MODULE, question, task_vars=task_vars)
        except AnsibleConnectionFailure as error:
            return {"unreachable": True, "msg": str(error)}
        self._warnings += answer.get("warnings") or []
        return answer

    def _fleet(self, given: dict[str, t.Any], answer: dict[str, t.Any]) -> dict[str, t.Any]:
        """What the fleet directory has, the record joined with that of the host.

        What a run that only reads would have put on record counts as well.
        """
        service, host, returned = given["service"], given["about"]["host"], given["settled"].get("returned", [])
        paths = {kind: f"{given['fleet_dir']}/{name}" for kind, name in _files.file_names(service, host).items()}
        on_host = [*answer["entries"], *returned]
        return {
            "returned": returned,
            "record": _fleet_dir.record(paths["record"], host, on_host, self._warnings.append),
            "env": _fleet_dir.env_file(paths["env"], service, host),
            "files": [_fleet_dir.managed_file(paths[kind], hide=True) for kind in ("env", "serve", "bats")],
        }
