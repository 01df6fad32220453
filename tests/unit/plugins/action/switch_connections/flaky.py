# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The local connection, but lost while the file that SWITCH_TEST_DOWN names exists, as ssh is while a link is down."""

from __future__ import annotations

import os
import typing as t

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection import local

DOCUMENTATION = (local.DOCUMENTATION or "").replace("name: local", "name: flaky")


class Connection(local.Connection):  # type: ignore[misc]
    """See above."""

    transport = "flaky"

    def _check(self) -> None:
        if os.path.exists(os.environ["SWITCH_TEST_DOWN"]):
            raise AnsibleConnectionFailure("the link is down")

    def exec_command(self, *args: t.Any, **kwargs: t.Any) -> t.Any:
        """Run a command, unless the link is down."""
        self._check()
        return super().exec_command(*args, **kwargs)

    def put_file(self, *args: t.Any, **kwargs: t.Any) -> t.Any:
        """Copy a file, unless the link is down."""
        self._check()
        return super().put_file(*args, **kwargs)

    def reset(self) -> None:
        """There is nothing to close."""
