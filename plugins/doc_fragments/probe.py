# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """What the modules that probe an endpoint say alike; their argument specs share it in ``_endpoint.options``."""

    DOCUMENTATION = r"""
attributes:
  check_mode:
    support: full
    description: Checks the options, sends no request at all, and says that it was skipped.
  diff_mode:
    support: none
    description: The module changes nothing.
options:
  endpoint:
    description:
      - Base URL of the endpoint, without C(/v1), for example V(http://127.0.0.1:8000).
      - It is asked from the host that the task runs on. Proxies of the environment are not used, redirects are not
        followed.
    type: str
    required: true
  api_key:
    description:
      - Key of the endpoint. It is sent only to paths that ask for one, and never printed.
      - A key shorter than 8 characters or of digits alone is refused, since keeping it out of a result would mangle
        equal numbers in it.
    type: str
  api_key_file:
    description:
      - File that holds the key, on the host that the task runs on. The same rules hold for its content.
    type: path
  model:
    description:
      - Model to ask for. The default is the first one that C(/v1/models) lists.
    type: str
  timeout:
    description:
      - Seconds from connect to the last byte, for each request as a whole. Also how long the probe waits for an
        endpoint that is still loading.
      - The first request that passes it ends the probe.
      - At most a week, 604800.
      - A request that a full queue refuses (429), or an endpoint that is not ready (503), is sent again after the time
        that C(Retry-After) names, in seconds or by a date, a second without it, until this time is over.
      - A whole number in plain decimal digits.
    type: raw
    default: 1800
  load_timeout:
    description:
      - Seconds for which nothing listening is taken for an engine that is still loading its model, since it listens
        only then. With V(0), nothing listening fails at once.
      - A whole number in plain decimal digits.
    type: raw
    default: 0
"""

    # For those that size prompts of their own.
    PROMPTS = r"""
options:
  chars_per_token:
    description:
      - Characters a token of the probe's own text, as M(kvfleet.radiance.token_calibration_info) returns it. The
        default is to calibrate first.
    type: float
  require_idle:
    description:
      - Wait for other traffic to end, up to O(timeout), before anything is sent. Without it, other traffic makes the
        verdict V(inconclusive).
    type: bool
    default: false
  form:
    description:
      - How much is measured. V(full) takes longer, see the description of the module.
    type: str
    choices: [quick, full]
    default: quick
"""
