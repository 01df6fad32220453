# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A boot's text without what tells whose it is, for a report: the same figures, and placeholders for names and paths.

Pure. The same thing has the same placeholder throughout. What is left is what the engine
prints of itself: figures, architecture, quantisation, devices, ports, and the loopback and unspecified addresses.
"""

from __future__ import annotations

import ipaddress
import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import boots
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.ledger import read_ledger
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.lines import Line, read_line, split_lines

# Names that are no one's. Some are words of the engine's reports, which would not be read back without them.
_COMMON = frozenset(
    ["admin", "card", "context", "device", "engine", "gpu", "host", "localhost", "model", "node", "pool", "radiance"]
    + ["root", "server", "user"]
)

_END = r"[^\s\"'`,;:.()\[\]<>]"
_SECRET_OPTION = re.compile(
    r"((?:--?|\b)(?:[A-Za-z][\w-]*[-_])?(?:key|token|secret|password|passwd)(?:\s*=\s*|:\s+|\s+(?=\S*\d))[\"']?)"
    r"(?!needs |is |must |takes )([^\s<>\"',;]{6,})",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(\bbearer\s+)(?=\S*\d)([^\s<>\"',;]{8,})", re.IGNORECASE)
# Tokens of known forms, and what is long and random: no word of the engine has 32 characters with a digit in it.
_TOKEN = re.compile(
    r"(?<![\w.-])((?:sk|pk|hf|gh[oprsu]|glpat|xox[abp]|eyJ)[-_]?[\w.-]{12,}|(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[\w-]{32,})"
)
_URL = re.compile(
    rf"\b([a-z][a-z0-9+.-]{{1,15}}://)(?:[^\s/@<>]+@)?(\[[0-9A-Fa-f:.]+\]|[^\s/:\"'`<>,;()]+)(:\d+)?(/\S*{_END})?"
)
_MAIL = re.compile(r"(?<![\w.+-])([\w.+-]+@[\w.-]*\w)")
_MODEL = re.compile(r"^model: (.+?)  arch=(\S+)")
_HOME = re.compile(r"/(?:home|Users)/([\w.-]*\w)")
# A route of the engine's own interface is no path.
_ROOT = r"(?:~[\w-]*|\.{1,2})?/(?!v1\b)"
_QUOTED_PATH = re.compile(rf"([\"'`])({_ROOT}[^\"'`<>]+)(?=\1)")
_PATH = re.compile(rf"()(?<![\w<>/.~-])(?!(?<=:)//)({_ROOT}(?:[^\s\"'`()\[\]<>]*{_END}))")
_EXTENSION = r"(?:rad|gguf|safetensors|json|jinja2?|j2|so|log|sock|pem|crt|key|ya?ml|toml|txt|py|sh|bin)"
_FILE = re.compile(rf"()(?<![\w<>/.-])((?:[\w.+-]+/)*[\w+-][\w.+-]*\.{_EXTENSION})(?![\w-]|\.\w)")
_ADDRESS_6 = re.compile(r"(?<![\w:.])([0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:\.\d+){0,3})(?![\w:]|\.\w)")
_ADDRESS_4 = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d{1,3}){3})(?!\w|\.\d)")
_HARDWARE = re.compile(r"(?<![\w:])([0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5})(?![\w:])")
_DOMAIN = (
    "com|net|org|io|dev|ai|app|cloud|eu|uk|de|fr|nl|be|it|es|pl|at|ch|se|no|fi|dk|cz|ru|ua|jp|cn|kr|in|au|nz|ca|us|br|mx"
    "|edu|gov|info|lan|local|localdomain|home|internal|intranet|corp|test|example"
)
_HOST = re.compile(rf"(?<![\w@<>.-])((?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:{_DOMAIN}))(?![\w-]|\.\w)", re.IGNORECASE)


def anonymous_log(
    text: str, *, boot: int = -1, bounded: bool = False, names: t.Iterable[str] = (), secrets: t.Iterable[str] = ()
) -> str | None:
    """The boot's lines up to its listening line, anonymised; None where ``text`` has no boot, or only its traffic.

    ``boot`` and ``bounded`` as for ``read_ledger``. ``names``: words that are replaced wherever they stand alone
    (hosts, users, paths); ``secrets``: texts that are replaced wherever they are.

    Raises RadianceError ``log_not_anonymous`` where the replaced text would not read back with the same figures.
    """
    chosen = boots.select([read_line(raw) for raw in split_lines(text)], boot, bounded)
    lines = chosen.lines or []
    # Without a beginning and without an end this may be anything that came after a boot, clients' words included.
    if not lines or (chosen.headless and not boots.is_listening(lines[-1])):
        return None
    plain = "".join(_rendered(line) for line in lines)
    replace = _Replacer([line.text for line in lines], names, secrets)
    anonymous = "".join(_rendered(line._replace(text=replace(line.text))) for line in lines)
    before, after = figures(plain), figures(anonymous)
    changed = [key for key, value in before.items() if value != after[key]]
    if changed:
        raise RadianceError(
            "The boot's log cannot be made anonymous: without the names of this host, its users and its files it would "
            f"not give the same {', '.join(changed)}, so one of them is a word of the engine's reports. Replace them "
            "by hand in a copy of the log.",
            code="log_not_anonymous",
        )
    return anonymous


def figures(text: str) -> dict[str, t.Any]:
    """The ledger of one boot's text, without what names things: these are what an anonymous log must keep."""
    ledger = read_ledger(text, source={}, bounded=True)
    return {
        **{key: value for key, value in ledger.items() if key not in ("source", "fingerprint", "warnings")},
        "model": {**ledger["model"], "name": None},
        "reason": ledger["reason"] and ledger["reason"]["code"],
        "settled": [{**row, "line": None} for row in ledger["settled"]],
        "warnings": [(row["level"], row["rank"]) for row in ledger["warnings"]],
    }


class _Replacer:
    """Replaces what is private in one line after the other."""

    def __init__(self, lines: t.Sequence[str], names: t.Iterable[str], secrets: t.Iterable[str]) -> None:
        self._places: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        models = [(found.group(1), found.group(2)) for found in map(_MODEL.match, lines) if found]
        users = [user for line in lines for user in _HOME.findall(line)]
        known = {name for name in (*names, *users) if name and name.lower() not in _COMMON}
        self._secrets = sorted((secret for secret in secrets if secret), key=len, reverse=True)
        self._paths = sorted((name for name in known if "/" in name), key=len, reverse=True)
        self._names = _words(name for name in known if "/" not in name)
        self._models = _words(name for name, arch in models if name != arch)

    def __call__(self, text: str) -> str:
        text = self._literally("key", self._secrets, text)
        for pattern in (_SECRET_OPTION, _BEARER):
            text = pattern.sub(lambda found: found[1] + self._place("key", found[2]), text)
        text = self._literally("path", self._paths, text)
        text = self._each("model", self._models, text)
        text = _URL.sub(self._url, text)
        text = self._each("mail", _MAIL, text)
        for pattern in (_QUOTED_PATH, _PATH):
            text = pattern.sub(lambda found: found[1] + self._place("path", found[2]), text)
        text = _FILE.sub(lambda found: self._place("file", found[2]), text)
        text = self._each("key", _TOKEN, text)
        for pattern in (_ADDRESS_6, _ADDRESS_4):
            text = pattern.sub(lambda found: self._address(found[1]), text)
        text = self._each("hardware", _HARDWARE, text)
        text = self._each("host", _HOST, text)
        return self._each("name", self._names, text)

    def _literally(self, kind: str, values: t.Sequence[str], text: str) -> str:
        for value in values:
            if value in text:
                text = text.replace(value, self._place(kind, value))
        return text

    def _each(self, kind: str, pattern: re.Pattern[str] | None, text: str) -> str:
        if pattern is None:
            return text
        return pattern.sub(lambda found: self._place(kind, found[1]), text)

    def _url(self, found: re.Match[str]) -> str:
        scheme, host, port, path = found.groups()
        return scheme + self._host(host) + (port or "") + (f"/{self._place('path', path)}" if path else "")

    def _host(self, host: str) -> str:
        bare = host.strip("[]")
        if _is_address(bare):
            return host if self._address(bare) == bare else self._address(bare)
        return host if host.lower() == "localhost" else self._place("host", host)

    def _address(self, text: str) -> str:
        if not _is_address(text):
            return text
        address = ipaddress.ip_address(text)
        return text if address.is_loopback or address.is_unspecified else self._place("address", str(address))

    def _place(self, kind: str, value: str) -> str:
        """The placeholder of a thing: ``<path-1>`` is the first path that was seen."""
        key = (kind, value)
        if key not in self._places:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._places[key] = f"<{kind}-{self._counts[kind]}>"
        return self._places[key]


def _words(names: t.Iterable[str]) -> re.Pattern[str] | None:
    """Any of the names where it stands alone, the longest first."""
    ordered = sorted(set(names), key=lambda name: (-len(name), name))
    if not ordered:
        return None
    return re.compile(rf"(?<![\w<])({'|'.join(map(re.escape, ordered))})(?!\w|-\d+>)", re.IGNORECASE)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _rendered(line: Line) -> str:
    rank = "" if line.rank is None else f"[{line.rank}]"
    return f"{line.level}{rank} {line.text}\n" if line.level else f"{line.text}\n"
