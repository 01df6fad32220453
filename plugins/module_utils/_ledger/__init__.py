# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text of a boot to its ledger. Pure: nothing here reads a file, asks a process or keeps the time.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.ledger import absent_ledger, read_ledger

__all__ = ["absent_ledger", "read_ledger"]
