# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a boot's text comes from: a log file, a receipt, or text that was handed over.

Private to the collection: it may change in any release.
"""

from __future__ import annotations
