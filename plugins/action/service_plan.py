# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks the host of a service once, reads the fleet directory, and tells what there is, or plans it.

All in one task: on its way into the plan nothing passes through a template, where Ansible looks at each value again.
"""

from __future__ import annotations

import posixpath
import typing as t

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import (
    _failure,
    _files,
    _fleet_dir,
    _handover,
    _known,
    _look,
    _planned,
    _service,
)
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import plain

_MODULE = "kvfleet.radiance.service_info"
ARGUMENTS: dict[str, t.Any] = {
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
    "timeouts": {
        "type": "dict",
        "required": True,
        "options": {
            name: {"type": "float", "required": True} for name in ("drain", "stop", "release", "ready", "probe")
        },
    },
    "probes": {"type": "str", "choices": ["none", "quick", "full"], "default": "none"},
    "rate": {
        "type": "dict",
        "required": True,
        "options": {
            "prompt_tokens": {"type": "int", "required": True, "no_log": False},
            "generate_tokens": {"type": "int", "required": True, "no_log": False},
            "runs": {"type": "int", "required": True},
        },
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
        self._warnings: list[str] = []
        self._facts: dict[str, t.Any] = {}
        self._given: dict[str, t.Any] = {}
        run = {"service": plain(self._task.args.get("service")), "failure": None, "unsettled": ""}
        try:
            self._given = plain(self.validate_argument_spec(ARGUMENTS)[1])
            run |= self._run()
        except RadianceError as error:
            run["failure"] = _failure.refusal(error)
        except AnsibleError as error:
            # Of the arguments themselves, before there are any.
            where = "" if self._given else " (An argument NAME of this step is the variable endpoint_NAME.)"
            run["failure"] = _failure.failure({"msg": f"{error}{where}"})
        # The interpreter, where Ansible had to find it.
        facts = {"ansible_facts": self._facts} if self._facts else {}
        return {**result, **run, **facts, "changed": False, "warnings": self._warnings}

    def _run(self) -> dict[str, t.Any]:
        """What there is, or the plan; or ``failure``; or what is ``unsettled``, with what was ``settled`` before."""
        given, service, settled = self._given, self._given["service"], self._given["settled"]
        _service.require_fit(service)
        for name in ("fleet_dir", "target_dir", "state_dir"):
            _look.require_path(given[name], f"endpoint_{name}")
        self._names = _files.file_names(service, self._host)
        others = _handover.card_others(service, given["services"], self._host, given["target_dir"], given["request"])
        answer = self._ask(others)
        failure = _look.no_answer(answer)
        if failure:
            return {"failure": failure}
        if "switch" not in settled and _look.left(answer):
            return {"unsettled": "switch", "settled": settled}
        if answer["interrupted"]:
            # In check mode, or where only is read: nothing has finished it.
            return {"failure": _look.not_ended(service, self._host)}
        boot = answer["boot"]
        paths = {f"{kind}_path": posixpath.join(given["target_dir"], self._names[kind]) for kind in ("env", "serve")}
        failure = _look.not_serving(service, boot, paths["serve_path"], others, given["handover"])
        if failure:
            return {"failure": failure}
        if "code" in boot:
            self._warnings.append(f"{boot['msg']} The ledger of {service['name']} was not held to its endpoint.")
        if given["plan"] and others and "others" not in settled:
            return {"unsettled": "others", "settled": settled, "others": others}
        read = {**self._fleet(answer["entries"]), "boot": boot, "there": answer, "others": settled.get("others", [])}
        about = {"host": self._host, "adopts": given["adopts"], **paths}
        if not given["plan"]:
            return _known.known_run(service, read, about)
        run = _planned.planned_run(service, read, given["request"], {**about, **self._more()}, settled.get("image"))
        return {"unsettled": "image", "settled": settled, **run} if run.get("asked") else run

    def _ask(self, others: list[dict[str, t.Any]]) -> dict[str, t.Any]:
        """What the host answers, or why it does not."""
        given = self._given
        # A service that gets the cards of another one does not run yet: it is planned from its last boot. What crashed
        # is planned from there too, for nobody wanted it to end.
        question = _look.question(
            given["service"],
            self._host,
            target_dir=given["target_dir"],
            state_dir=given["state_dir"],
            others=others,
            cross_check=given["cross_check"],
            last_receipt="always" if given["handover"] else "crashed" if given["plan"] else "never",
        )
        try:
            answer: dict[str, t.Any] = self._execute_module(_MODULE, question, task_vars=self._vars)
        except AnsibleConnectionFailure as error:
            return {"unreachable": True, "msg": str(error)}
        self._warnings += answer.get("warnings") or []
        self._facts = answer.get("ansible_facts") or {}
        return answer

    def _more(self) -> dict[str, t.Any]:
        """What else a plan depends on, as ``planned_run`` takes it."""
        given, service = self._given, self._given["service"]
        documents = {kind: f"{given['fleet_dir']}/{self._names[kind]}" for kind in service.get("docs") or []}
        return {
            **{name: given[name] for name in ("handover", "not_after", "undo", "rate", "read_only")},
            "documents": {kind: _fleet_dir.managed_file(path)["text"] for kind, path in documents.items()},
            "drift": given["request"].get("drift", ""),
            "timeouts": {**given["timeouts"], **(service.get("timeouts") or {})},
            "probes": given["request"].get("probes", given["probes"]),
            "check": self._task.check_mode,
            "told": given["settled"].get("switch", {}).get("told", ""),
            "uncommitted": _fleet_dir.uncommitted(given["fleet_dir"]),
        }

    def _fleet(self, entries: list[dict[str, t.Any]]) -> dict[str, t.Any]:
        """What the fleet directory has, the record joined with ``entries``, those of the host.

        What a run that only reads would have put on record counts as well.
        """
        service, returned = self._given["service"], self._given["settled"].get("switch", {}).get("returned", [])
        paths = {kind: f"{self._given['fleet_dir']}/{name}" for kind, name in self._names.items()}
        return {
            "returned": returned,
            "record": _fleet_dir.record(paths["record"], self._host, [*entries, *returned], self._warnings.append),
            "files": {
                "env": _fleet_dir.env_file(paths["env"], service, self._host),
                **{kind: _fleet_dir.managed_file(paths[kind], hide=True) for kind in ("serve", "bats")},
            },
        }
