# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one exception that the core raises for what a person can mend.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t


class RadianceError(Exception):
    """A refusal in words: what was asked, what there is, the line it came from, and one way out.

    ``code`` is a stable snake_case word. ``result`` holds the keys that a module returns beside
    ``msg`` when it fails with this error.
    """

    def __init__(self, text: str, *, code: str, result: dict[str, t.Any] | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.code = code
        self.result: dict[str, t.Any] = dict(result or {})
