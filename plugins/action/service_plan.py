# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks the host of a service once, reads the fleet directory, and tells what there is, or plans it.

All in one task: what is read never passes through a template, where Ansible would look at each value of it again.
"""

from __future__ import annotations

import posixpath
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
    "plan": {"type": "bool", "default": True},
    "request": {"type": "dict", "default": {}},
    "handover": {"type": "bool", "default": False},
    "not_after": {"type": "dict"},
    "undo": {"type": "str", "default": ""},
    "timeouts": {"type": "dict", "required": True},
    "probes": {"type": "str", "choices": ["none", "quick", "full"], "default": "none"},
    "rate": {
        "type": "dict",
        "required": True,
        "options": {name: {"type": "int", "required": True} for name in ("prompt_tokens", "generate_tokens", "runs")},
    },
    "adopts": {"type": "bool", "default": False},
    "read_only": {"type": "bool", "default": False},
    "settled": {"type": "dict", "default": {}},
}


class ActionModule(ActionBase):  # type: ignore[misc]
    """See the documentation beside the modules."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """``endpoint_run`` as the role keeps it; with ``failure``, which the role ends with."""
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        self._vars = task_vars or {}
        self._host = str(self._vars.get("inventory_hostname", ""))
        self._given: dict[str, t.Any] = plain(self.validate_argument_spec(_ARGUMENTS)[1])
        self._warnings: list[str] = []
        run = {"service": self._given["service"], "failure": None, "unsettled": "", "asked": None}
        try:
            run |= self._run()
        except RadianceError as error:
            run["failure"] = _summary.failure({"msg": error.text, "code": error.code})
        return {**result, **run, "changed": False, "settled": self._given["settled"], "warnings": self._warnings}

    def _run(self) -> dict[str, t.Any]:
        """What there is, or the plan; or ``failure``, or what is ``unsettled``."""
        given, service, settled = self._given, self._given["service"], self._given["settled"]
        wrong = _schemas.problems(service, "service")
        if wrong:
            raise RadianceError(f"This is no service: {'; '.join(wrong)}.", code="service_unfit")
        reserved = given["request"].get("reserved_for_others_mib") or service.get("reserved_for_others_mib") or []
        others = _handover.card_others(service, given["services"], self._host, given["target_dir"], reserved)
        answer = self._ask(others)
        failure = _look.no_answer(answer, given["state_dir"])
        if failure:
            return {"failure": failure}
        if _look.left(answer) and "told" not in settled:
            return {"unsettled": "switch"}
        about, boot = self._about(), answer["boot"]
        failure = _look.not_serving(service, boot, about["serve_path"], others, given["handover"])
        if failure:
            return {"failure": failure}
        if "code" in boot:
            self._warnings.append(f"{boot['msg']} The ledger of {service['name']} was not held to its endpoint.")
        if others and "others" not in settled:
            return {"unsettled": "others"}
        read = {**self._fleet(answer["entries"]), "boot": boot, "there": answer, "others": settled.get("others", [])}
        if not given["plan"]:
            return _known.known_run(service, read, about)
        return _planned.planned_run(service, read, given["request"], about, settled.get("image"))

    def _ask(self, others: list[dict[str, t.Any]]) -> dict[str, t.Any]:
        """What the host answers, or that it does not."""
        # A service that gets the cards of another one does not run yet: it is planned from its last boot. What crashed
        # is planned from there too, for nobody wanted it to end.
        last = "always" if self._given["handover"] else "crashed" if self._given["plan"] else "never"
        given = self._given
        question = _look.question(
            given["service"], self._host, given["target_dir"], given["state_dir"], others, given["cross_check"], last
        )
        try:
            answer: dict[str, t.Any] = self._execute_module(_MODULE, question, task_vars=self._vars)
        except AnsibleConnectionFailure as error:
            return {"unreachable": True, "msg": str(error)}
        self._warnings += answer.get("warnings") or []
        return answer

    def _about(self) -> dict[str, t.Any]:
        """What else the run depends on, as ``planned_run`` takes it."""
        given, service = self._given, self._given["service"]
        names = _files.file_names(service, self._host)
        documents = {kind: f"{given['fleet_dir']}/{names[kind]}" for kind in service.get("docs") or []}
        return {
            **{name: given[name] for name in ("handover", "not_after", "undo", "rate", "adopts", "read_only")},
            "host": self._host,
            "env_path": posixpath.join(given["target_dir"], names["env"]),
            "serve_path": posixpath.join(given["target_dir"], names["serve"]),
            "documents": {kind: _fleet_dir.managed_file(path)["text"] for kind, path in documents.items()},
            "drift": given["request"].get("drift", ""),
            "timeouts": {**given["timeouts"], **(service.get("timeouts") or {})},
            "probes": given["request"].get("probes", given["probes"]),
            "check": self._task.check_mode,
            "told": given["settled"].get("told", ""),
            "uncommitted": bool(_fleet_dir.uncommitted(given["fleet_dir"])),
        }

    def _fleet(self, entries: list[dict[str, t.Any]]) -> dict[str, t.Any]:
        """What the fleet directory has, the record joined with ``entries``, those of the host.

        What a run that only reads would have put on record counts as well.
        """
        service, returned = self._given["service"], self._given["settled"].get("returned", [])
        names = _files.file_names(service, self._host)
        paths = {kind: f"{self._given['fleet_dir']}/{name}" for kind, name in names.items()}
        return {
            "returned": returned,
            "record": _fleet_dir.record(paths["record"], self._host, [*entries, *returned], self._warnings.append),
            "env": _fleet_dir.env_file(paths["env"], service, self._host),
            "files": [_fleet_dir.managed_file(paths[kind], hide=True) for kind in ("env", "serve", "bats")],
        }
