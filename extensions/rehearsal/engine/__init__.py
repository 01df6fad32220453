# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of the stand-in engine. It shares no code with the collection: neither can hide the other's errors."""
