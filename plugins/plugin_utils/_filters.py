# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The thin edge between Jinja and the typed functions: plain values in, refusals as filter errors."""

from __future__ import annotations

import functools
import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError

Function = t.Callable[..., t.Any]


def plain(value: t.Any) -> t.Any:
    """Dicts, lists and text as Python's own: ansible-core hands over lazy and tagged ones."""
    if isinstance(value, t.Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return str(value)
    return value


def as_filter(function: Function) -> Function:
    """The function as a filter: plain values in, RadianceError out as AnsibleFilterError with its text."""

    @functools.wraps(function)
    def run(*args: t.Any, **kwargs: t.Any) -> t.Any:
        try:
            return function(*[plain(arg) for arg in args], **{name: plain(arg) for name, arg in kwargs.items()})
        except RadianceError as error:
            raise AnsibleFilterError(error.text) from error

    return run
