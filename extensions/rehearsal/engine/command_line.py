# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of radiance: its flags by release, their defaults, and how loosely it reads numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from .releases import Release

AUTO = "auto"

# flag: (kind, default, lowest, highest). "loose" is C's atoll, as the engine reads its sizes; "strict" takes whole
# numbers only.
_NUMBERS: dict[str, tuple[str, int, int, int]] = {
    "--tp": ("loose", 1, -(2**62), 2**62),
    "--tp-wire-min-kb": ("loose", 128, 0, 2**40),
    "--max-num-batched-tokens": ("loose", 8192, 1, 2**24),
    "--max-num-seqs": ("loose", 256, 1, 65536),
    "--max-model-len": ("loose", 0, 0, 2**31),
    "--gpu-headroom-mib": ("loose", 96, 0, 2**31),
    "--vram-weights-mib": ("loose", 0, 0, 2**31),
    "--vram-kv-mib": ("loose", 0, 0, 2**31),
    "--host-pool-mib": ("loose", 0, 0, 2**31),
    "--prefix-cache-host-mib": ("loose", 0, 0, 2**31),
    "--prefix-cache-disk-mib": ("loose", 0, 0, 2**31),
    "--checkpoint-interval": ("loose", 2048, 1, 2**31),
    "--checkpoint-slots": ("loose", 8, 0, 65536),
    "--port": ("strict", 8000, 0, 65535),
    "--max-queued-requests": ("strict", 0, 0, 2**31),
    "--max-n": ("strict", 0, 0, 2**31),
    "--read-timeout": ("strict", 30, 1, 86400),
    "--write-timeout": ("strict", 600, 1, 86400),
    "--keep-alive-timeout": ("strict", 5, 0, 86400),
    "--max-body-mib": ("strict", 512, 1, 65536),
    "--retry-after": ("strict", 1, 0, 86400),
    "--http-threads": ("strict", 16, 1, 65536),
    "--max-tokens-cap": ("strict", 0, 0, 2**31),
}
_TEXTS: dict[str, str] = {
    "--model": "",
    "--tp-wire": "exact",
    "--kv-cache-dtype": "bf16",
    "--expert-vs-cache-ratio": "0.75",
    "--placement": AUTO,
    "--ngram-placement": AUTO,
    "--embedding-placement": AUTO,
    "--p2p": AUTO,
    "--checkpoint-policy": "geometric-backoff",
    "--num-speculative-tokens": AUTO,
    "--default-max-tokens": AUTO,
    "--host": "0.0.0.0",
    "--api-key": "",
    "--prefix-cache-dir": "",
    "--weights-disk-tier": "",
    "--draft-model": "",
    "--radiance-home": "",
    "--kernels": "",
}
_SWITCHES = ("--no-prefix-cache", "--deterministic", "--debug-placement", "--live", "-v", "-vv")
_ALIASES = {"--gpu-headroom": "--gpu-headroom-mib"}
_CHOICES: dict[str, tuple[str, ...]] = {
    "--tp-wire": ("exact", "wht6"),
    "--kv-cache-dtype": ("bf16", "fp8"),
    "--checkpoint-policy": ("geometric-backoff", "tip-only", "keep-all"),
    "--ngram-placement": (AUTO, "disk", "ram"),
    "--p2p": (AUTO, "on", "off"),
}
# The first release that has a flag, and the first that has it no longer.
_SINCE = {"--ngram-placement": (1, 0, 10), "--embedding-placement": (1, 1, 1), "--p2p": (1, 2)}
_GONE = {"--expert-vs-cache-ratio": (1, 1), "--vram-weights-mib": (1, 3), "--vram-kv-mib": (1, 3)}
# The only flags with a form in the environment.
_FROM_ENVIRONMENT = {"--radiance-home": "RADIANCE_HOME", "--kernels": "RADIANCE_KERNELS"}
MAX_DRAFTS = 16


class UsageError(Exception):
    """A command line that the engine ends with an E line, its usage and exit status 2."""


@dataclass
class Flags:
    """What a command line says, defaults filled in; sizes in MiB. ``max_model_len`` 0 is the training context."""

    numbers: dict[str, int] = field(default_factory=lambda: {name: row[1] for name, row in _NUMBERS.items()})
    texts: dict[str, str] = field(default_factory=lambda: dict(_TEXTS))
    switches: list[str] = field(default_factory=list)
    given: set[str] = field(default_factory=set)
    help: bool = False

    def number(self, name: str) -> int:
        """A number by its flag."""
        return self.numbers[name]

    def text(self, name: str) -> str:
        """A text by its flag."""
        return self.texts[name]

    def stated(self, name: str) -> str:
        """A number or a text, as it is printed."""
        return str(self.numbers[name]) if name in self.numbers else self.texts[name]

    @property
    def drafts(self) -> int | None:
        """``--num-speculative-tokens``, or None for auto."""
        asked = self.texts["--num-speculative-tokens"]
        return None if asked == AUTO else int(asked)

    @property
    def queue_cap(self) -> int:
        """How many requests are admitted at once, running and waiting."""
        return self.numbers["--max-queued-requests"] or 8 * self.numbers["--max-num-seqs"]

    @property
    def max_n(self) -> int:
        """The most answers that one request may ask for."""
        return self.numbers["--max-n"] or max(8, self.numbers["--max-num-seqs"])


def atoll(text: str) -> int:
    """C's atoll: leading blanks, a sign, digits; anything else ends the number, and no digits are 0."""
    found = re.match(r"\s*([+-]?\d+)", text)
    return int(found.group(1)) if found else 0


def _whole(name: str, text: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text):
        raise UsageError(f"{name} takes a whole number, not '{text}'")
    return int(text)


def _within(name: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise UsageError(f"{name} must be in [{low}, {high}], not {value}")
    return value


def known(name: str, release: Release) -> bool:
    """Whether a release has this flag."""
    if name not in _NUMBERS and name not in _TEXTS:
        return False
    return release.since(*_SINCE.get(name, (0,))) and not (name in _GONE and release.since(*_GONE[name]))


def model_of(argv: list[str]) -> str:
    """The model that a command line names, before anything else of it is read; the last one wins."""
    named = [value for name, value in zip(argv, argv[1:]) if name == "--model"]
    return named[-1] if named else ""


def parse(argv: list[str], release: Release | None = None, environment: Mapping[str, str] | None = None) -> Flags:
    """Read a command line, the last of a repeated flag winning; UsageError carries the engine's own text."""
    release = release or Release()
    flags = Flags()
    for name, variable in _FROM_ENVIRONMENT.items():
        flags.texts[name] = (environment or {}).get(variable, "")
    rest = list(argv)
    while rest:
        given = rest.pop(0)
        if given in ("--help", "-h"):
            flags.help = True
            return flags
        if given in _SWITCHES:
            flags.switches.append(given)
            continue
        name = _ALIASES.get(given, given)
        if not known(name, release):
            raise UsageError(f"unknown option '{given}'")
        if not rest:
            raise UsageError(f"{given} needs an argument")
        value = rest.pop(0)
        flags.given.add(name)
        if name in _NUMBERS:
            kind, _default, low, high = _NUMBERS[name]
            flags.numbers[name] = _within(given, atoll(value) if kind == "loose" else _whole(given, value), low, high)
        else:
            flags.texts[name] = value
    _check(flags)
    return flags


def _check(flags: Flags) -> None:
    if not flags.text("--model"):
        raise UsageError("--model is required")
    if flags.number("--tp") < 1:
        raise UsageError("--tp must be >= 1")
    for name, choices in _CHOICES.items():
        if flags.text(name) not in choices:
            listed = f"{', '.join(choices[:-1])} or {choices[-1]}"
            raise UsageError(f"{name} takes {listed}, not '{flags.text(name)}'")
    ratio = flags.text("--expert-vs-cache-ratio")
    if not 0 < _real(ratio) < 1:
        raise UsageError(
            "--expert-vs-cache-ratio is the WEIGHTS share of what is claimed and must be strictly between 0 and 1, "
            f"not '{ratio}'. 0.75 gives three quarters to weights and a quarter to the KV cache."
        )
    if flags.text("--draft-model"):
        raise UsageError("--draft-model is not implemented. Leave it out.")
    drafts = flags.text("--num-speculative-tokens")
    if drafts != AUTO:
        _within("--num-speculative-tokens", _whole("--num-speculative-tokens", drafts), 0, MAX_DRAFTS)
    default = flags.text("--default-max-tokens")
    if default != AUTO:
        _within("--default-max-tokens", _whole("--default-max-tokens", default), 1, 2**31)
    if flags.max_n > flags.queue_cap:
        raise UsageError(
            f"--max-n {flags.max_n} is above the {flags.queue_cap} requests the queue admits "
            "(--max-queued-requests), so a request asking for it could never be admitted"
        )


def _real(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def usage(release: Release | None = None) -> str:
    """The usage text: every flag of a release with its default."""
    release = release or Release()
    rows = ["usage: radiance --model FILE.rad [options]", ""]
    rows += [f"  {name} N  (default {row[1]})" for name, row in _NUMBERS.items() if known(name, release)]
    rows += [
        f"  {name} TEXT" + (f"  (default {text})" if text else "")
        for name, text in _TEXTS.items()
        if known(name, release)
    ]
    rows += [f"  {name}" for name in _SWITCHES] + ["  --help"]
    return "\n".join(rows) + "\n"
