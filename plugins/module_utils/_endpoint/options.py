# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that the probes share, and their reading: every number and key is checked before anything is sent.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import math
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.cards import DRM
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.client import Client
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.facts import MOST_SEQUENCES, MOST_WINDOW
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import read_regular
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import whole_number

CHECK_MODE = "check mode: the probe sends no request, since one would cost the endpoint's users real time"
_KEY_FILE_LIMIT = 4096
_LEAST_KEY = 8
_TIMEOUT_SECONDS = 1800
_MOST_SECONDS = 604_800

# The argument specs behind the fragments of doc_fragments/probe.py. Numbers are raw: Ansible's own int takes 06144,
# 6_144 and 1e3.
ENDPOINT: dict[str, t.Any] = {
    "endpoint": {"type": "str", "required": True},
    "api_key": {"type": "str", "no_log": True},
    "api_key_file": {"type": "path", "no_log": False},
    "model": {"type": "str"},
    "timeout": {"type": "raw", "default": _TIMEOUT_SECONDS},
    "load_timeout": {"type": "raw", "default": 0},
}
PROMPTS: dict[str, t.Any] = {
    "chars_per_token": {"type": "float", "no_log": False},
    "require_idle": {"type": "bool", "default": False},
    "form": {"type": "str", "choices": ["quick", "full"], "default": "quick"},
}


class Settings(t.NamedTuple):
    """A probe's options as read. ``timeout`` in seconds for each request; None where the endpoint decides.

    ``cards`` is the folder in which the driver shows what the cards hold.
    """

    client: Client
    timeout: float
    load_timeout: float
    model: str | None
    require_idle: bool
    sequences: int | None
    max_model_len: int | None
    generate_tokens: int | None
    prompt_tokens: int | None
    runs: int | None
    chars_per_token: float | None
    cards: str
    full: bool
    most_prefill_tps: float | None
    most_decode_tps: float | None
    api: str


def run(module: t.Any, probe: t.Callable[[Settings], t.Mapping[str, t.Any]], costly: bool = True) -> None:
    """Check the options, then run ``probe``; never a traceback for a person's mistake.

    In check mode, what costs the endpoint's users time does not run.
    """
    try:
        key = read_key(module.params["api_key"], module.params["api_key_file"])
        if key is not None:
            module.no_log_values.add(key)
        settings = read(module.params, key)
        result = {"skipped": True, "msg": CHECK_MODE} if module.check_mode and costly else probe(settings)
    except RadianceError as error:
        module.fail_json(msg=error.text, code=error.code, **error.result)
    module.exit_json(changed=False, **result)


def key_text(path: str) -> str:
    """What a key file holds, without white space around it. Raises OSError, also for a pipe, which might never end."""
    return read_regular(path, _KEY_FILE_LIMIT).decode("utf-8").strip()


def read_key(api_key: str | None, api_key_file: str | None) -> str | None:
    """The key to send. Raises RadianceError ``key_unusable`` (without the key) for one that cannot be kept secret."""
    key, source = api_key, "api_key"
    if api_key_file is not None:
        source = f"api_key_file {api_key_file}"
        try:
            key = key_text(api_key_file)
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise RadianceError(
                f"{source} cannot be read: {why}. Name a file that holds the key and that this user may read.",
                code="key_unreadable",
            ) from None
    if key is None:
        return None
    if len(key) < _LEAST_KEY or key.isdigit():
        raise RadianceError(
            f"{source}: a key shorter than {_LEAST_KEY} characters or all digits cannot be kept out of a result "
            "without mangling equal numbers in it. Start the engine with a longer key that has letters.",
            code="key_unusable",
        )
    if not all("!" <= character <= "~" for character in key):
        raise RadianceError(
            f"{source}: a key holds printable ASCII without white space. Write the key alone, on one line.",
            code="key_unusable",
        )
    return key


def read(params: t.Mapping[str, t.Any], key: str | None) -> Settings:
    """The options of any of the probes; those that a probe does not have are None."""
    timeout = _count(params, "timeout", _MOST_SECONDS) or _TIMEOUT_SECONDS
    return Settings(
        client=Client(params["endpoint"], api_key=key, timeout=float(timeout)),
        timeout=float(timeout),
        load_timeout=float(_count(params, "load_timeout", _MOST_SECONDS, least=0) or 0),
        model=params["model"],
        require_idle=bool(params.get("require_idle")),
        sequences=_count(params, "sequences", MOST_SEQUENCES),
        max_model_len=_count(params, "max_model_len", MOST_WINDOW),
        generate_tokens=_count(params, "generate_tokens"),
        prompt_tokens=_count(params, "prompt_tokens"),
        runs=_count(params, "runs"),
        chars_per_token=_ratio(params.get("chars_per_token")),
        cards=params.get("card_folder") or DRM,
        full=params.get("form") == "full",
        most_prefill_tps=_rate(params.get("most_prefill_tps"), "most_prefill_tps"),
        most_decode_tps=_rate(params.get("most_decode_tps"), "most_decode_tps"),
        api=params.get("api") or "completions",
    )


def _count(params: t.Mapping[str, t.Any], name: str, most: int | None = None, least: int = 1) -> int | None:
    value = params.get(name)
    if value is None:
        return None
    number = whole_number(value, name)
    if number < least:
        raise RadianceError(f"{name} is 0. State 1 or more.", code="option_out_of_range")
    if most is not None and number > most:
        raise RadianceError(
            f"{name} is {number:,}, and {most:,} is the most that can be stated.", code="option_out_of_range"
        )
    return number


def _ratio(value: float | None) -> float | None:
    if value is None:
        return None
    if not (math.isfinite(value) and 1.0 < value <= 20.0):
        raise RadianceError(
            f"chars_per_token is {value!r}, and text has more than 1 and at most 20 characters a token. Take it from "
            "token_calibration_info, or leave it out.",
            code="option_out_of_range",
        )
    return value


def _rate(value: float | None, name: str) -> float | None:
    if value is None:
        return None
    if not (math.isfinite(value) and value > 0):
        raise RadianceError(
            f"{name} is {value!r}. State the fastest rate that was measured, in tokens a second, or leave it out.",
            code="option_out_of_range",
        )
    return value
