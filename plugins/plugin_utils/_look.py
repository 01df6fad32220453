# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host is asked of a service, and what in its answer has to be settled, or ends it, before there is a plan."""

from __future__ import annotations

import posixpath
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import hidden
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _commands, _failure, _files, _service

Service = t.Mapping[str, t.Any]
Others = t.Sequence[t.Mapping[str, t.Any]]
# What a switch has left, by the names of service_info.
_LEFT = ("interrupted", "others_interrupted", "on_probation")


def question(
    service: Service,
    host: str,
    *,
    target_dir: str,
    state_dir: str,
    others: Others,
    cross_check: bool,
    last_receipt: str,
) -> dict[str, t.Any]:
    """The options of service_info: the files, the record, and the boot with what tells it from every other one.

    ``others`` are those of ``_handover.card_others``; with ``cross_check`` the boot is held to its endpoint.
    ``last_receipt`` is that of boot_ledger_info.
    """
    managed, files = _service.managed_by(service), _files.file_names(service, host)
    boot = {
        "source": managed["source"],
        "name": managed["name"],
        "unit": managed["unit"],
        "scope": managed["scope"],
        "path": service.get("log"),
        "pid_file": service.get("pid_file"),
        "receipts": posixpath.join(state_dir, str(service["name"]), "receipts"),
        "last_receipt": last_receipt,
        "endpoint": _service.endpoint_of(service) if cross_check else None,
        "api_key_file": service.get("api_key_file"),
    }
    return {
        "service": service["name"],
        "state_dir": state_dir,
        "files": [posixpath.join(target_dir, files[kind]) for kind in ("env", "serve")],
        "others": [other["service"] for other in others],
        "boot": {name: value for name, value in boot.items() if value is not None},
    }


def require_path(value: t.Any, name: str) -> None:
    """Hold the path of a folder to what no template leaves open. Raises RadianceError ``path_unfit``."""
    if not isinstance(value, str) or not value.startswith("/"):
        raise RadianceError(f"{name} is {value!r}. Give an absolute path.", code="path_unfit")


def no_answer(answer: t.Mapping[str, t.Any]) -> dict[str, str] | None:
    """Why the host's answer tells nothing, as a failure; None where it tells."""
    if {"entries", "texts", *_LEFT} <= answer.keys() and isinstance(answer.get("boot"), dict):
        return None
    msg = str(answer.get("msg") or "The host's answer is not that of service_info.")
    # Of a module that died Ansible says where to look, in what nobody would be shown.
    said = str(answer.get("module_stderr") or answer.get("module_stdout") or "").strip().splitlines()[-1:]
    return _failure.failure({**answer, "msg": "\n".join([msg, *map(hidden, said)])})


def left(answer: t.Mapping[str, t.Any]) -> bool:
    """Whether a switch has left something that is to be brought to an end first."""
    return any(answer[name] for name in _LEFT)


def not_ended(service: Service, host: str) -> dict[str, str]:
    """That a switch has not ended, as a failure: what will run then nobody knows."""
    name = str(service["name"])
    command = _commands.playbook("resize", host, name)
    return _failure.failure(
        {
            "msg": f"A switch of {name} has not ended: it was interrupted, or it runs now. Nothing is planned or "
            f"judged before it has. Where it was interrupted, this finishes it:\n{command}",
            "code": "switch_interrupted",
        }
    )


def not_serving(
    service: Service, boot: t.Mapping[str, t.Any], start: str, others: Others, handover: bool
) -> dict[str, str] | None:
    """That no boot serves whose process is there, as a failure with the way out; None where one does.

    ``start`` is the path of the serve script.
    """
    ledger = boot.get("ledger") or {}
    if "code" in boot and ledger.get("status") != "complete":
        return _failure.failure({**boot, "msg": _service.gone_words(service, start, boot, others, handover)})
    if not ledger["flags"]:
        return _failure.failure(
            {"outcome": "failed", "msg": _service.gone_words(service, start, None, others, handover)}
        )
    return None
