# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets in somebody's own files stay on their machine: hidden where a text is read, put back where it is written.

What a module returns stands on a screen and in a log. A secret is known by its name or its form; one that has neither
is a text like another. Private to the collection: it may change in any release.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError

MASK = "********"


def _unless_behind(*words: str) -> str:
    return "".join(rf"(?<!{word}[_.-])" for word in words)


# A name that holds a secret ends in one of these words, or in one and a number: API_KEY and HF_TOKEN2 do, API_KEY_FILE,
# MAX_TOKENS and EOS_TOKEN do not. What no other word ends in needs nothing between: PGPASSWORD.
SECRET_NAME = (
    r"(?:(?:[a-z0-9_.-]*[_.-])?(?:"
    + _unless_behind("public", "cache", "sort", "primary", "foreign")
    + r"key|"
    + _unless_behind("bos", "eos", "pad", "unk", "sep", "cls", "mask", "stop", "image", "audio", "video", "per")
    + r"token|credentials?|authorization"
    r"|(?:user|login|auth|admin|root|sudo|db|database|sql|mysql|postgres|pg|redis|mongo|smtp|mail|ftp|ssh|ldap|proxy"
    r"|registry|hub|vault)[_.-]?pass)"
    r"|pass|[a-z0-9_.-]*(?:[_.-]pwd|password|passwd|passphrase|secret|sshpass|secret[_.-]key[_.-]base"
    r"|(?:api|access|secret|private)[_.-]?keys?|(?:api|access|auth|refresh|bearer|hf|hub|github|gitlab)[_.-]?tokens?))"
    r"(?:[_.-]?[0-9]+)?"
)
_NO_NAME_BEFORE = r"(?<![\w.$-])"
_BLANKS = r"(?:[ \t]|\\[ \n])"
# What a shell takes for one word, up to so many pieces of it.
_COMMAND = r"\$\((?:[^()\n]|\([^()\n]*\))*\)"
_BRACES = r"\$\{(?:[^{}\n]|\$\{[^{}\n]*\})*\}"
_WORD = re.compile(
    rf"(?:{_COMMAND}|{_BRACES}|`[^`\n]*`|'[^'\n]*'|\"(?:{_COMMAND}|\\.|[^\"\\\n])*\"|\\."
    r"|[^\s;&|<>()'\"\\$`]+|[$`'\"]){0,256}"
)
# In characters: how far before a secret the quote around it is looked for.
_LOOKED_BACK = 1024
_LINES = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_TO_QUOTE = {"'": re.compile(r"[^'\n]*"), '"': re.compile(rf"(?:{_COMMAND}|\\.|[^\"\\\n])*")}
_TO_BLANK = {"'": re.compile(r"[^'\s;]*"), '"': re.compile(rf"(?:{_COMMAND}|{_BRACES}|\\.|[^\"\\\s;])*")}
_TO_BRACE = re.compile(rf"(?:{_BRACES}|{_COMMAND}|'[^'\n]*'|\\.|[^}}\n\\'$]+|['$]){{0,256}}")
_TO_LINE_END = re.compile(r"[^\n]*")
# In the query of a URL
_IN_QUERY = re.compile(r"\?(?:[^\s?]*&)?\Z")
_TO_AMPERSAND = re.compile(rf"(?:{_COMMAND}|{_BRACES}|[^&\s'\"#;$]+|\$){{0,256}}")
# What tells of a shell behind the value of an assignment; in an env the rest of the line is of the value.
_STARTS = r"(?:[A-Za-z_]\w*=|(?:exec|export|readonly|set|env|sudo|nohup|podman|docker|curl|wget|python3?|sh|bash)\b)"
_GOES_ON = re.compile(
    rf"[ \t]*(?:\n|\Z|[;&|]+(?=\s|\Z)|;{_STARTS})|[ \t]+(?:[;&|#]|[0-9]?[<>]|\\\n|{_STARTS}|\S*/|[^\n]*\s--?[a-z])"
)

# What stands before a secret, the end of the match being its beginning.
_ASSIGNED = re.compile(rf"(?im){_NO_NAME_BEFORE}(?:-e)?{SECRET_NAME}=|^[ \t]*{SECRET_NAME}[ \t]*=[ \t]*")
# --no-ask-password has no value.
_FLAG = rf"--?(?=[a-z])(?!no-){SECRET_NAME}"
_OPTION = re.compile(rf"(?i){_NO_NAME_BEFORE}{_FLAG}[\"']?,?{_BLANKS}+(?!--[a-z])")
_DEFAULT = re.compile(rf"(?i)\$\{{{SECRET_NAME}(?::?[-=]|:?\+(?![\"']?[-$]))")
# Of a header, or of YAML.
_SCHEME = rf"(?:(?:bearer|basic|digest|token){_BLANKS}+)?"
_HEADER = re.compile(
    rf"(?im){_NO_NAME_BEFORE}(?:(?:proxy-)?authorization:{_BLANKS}*|(?=[\w.]+-){SECRET_NAME}:{_BLANKS}+){_SCHEME}"
    rf"|^[ \t]*(?:-[ \t]+)?(?:{SECRET_NAME}|(?P<q>[\"']){SECRET_NAME}(?P=q))[ \t]*:[ \t]+(?![\"']){_SCHEME}"
)
# What has such a name and is none: the path of a file, and the name that podman has for one.
_OF_A_FILE = re.compile(
    r"(?i)(?<!api)(?<!access)(?<!secret)" + _unless_behind("api", "access", "secret") + r"key(?:[_.-]?[0-9]+)?\W*\Z"
)
_PATH = re.compile(rf"[\"']?(?:~|\.\.?|\$\w+|{_BRACES}|{_COMMAND})?(?:/(?:[\w.@%+,:$-]|{_BRACES})*)+[\"']?\s*")
_RUNTIME = re.compile(r"(?<![\w.-])(?:podman|docker|buildah)(?=[\s\"']|\Z)")
_OF_A_RUNTIME = re.compile(rf"--secret[\"']?,?(?:=|{_BLANKS}+)")
# "name": "value"
_MEMBER = re.compile(
    rf"(?i)(\\?[\"']?)(?<![\w.$-]){SECRET_NAME}\1[ \t]*:[ \t]*(?P<q>\\?[\"'])(?P<secret>(?:(?!(?P=q))[^\n])+)"
)
# The secret itself is the group.
_FORMS = (
    # scheme://user:value@host
    re.compile(r"(?i)(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://[^\s/:@'\"]*:(?P<secret>[^\s/'\"]+)@"),
    # Without its header; the words of a sentence are none.
    re.compile(
        r"(?:(?<=[\"'])(?i:bearer)[ \t]+|\b(?i:bearer)[ \t]+(?=\*{8}|\S{5})(?=\*|\S*[0-9A-Z]))(?P<secret>[\w.~+/=*-]+)"
    ),
    re.compile(r"(?i)auth[\"']?[ \t]*[=:][ \t]*[\"']?(?:basic|bearer|digest)[ \t]+(?P<secret>[\w.~+/=*:-]+)"),
    re.compile(r"\b(?i:basic)[ \t]+(?P<secret>[A-Za-z0-9+/]{6,}={1,2}|\*{8})"),
    # What services give out, by its beginning, which stays so that the mask is known for one; no part of a path.
    re.compile(r"(?<![\w/-])(?:hf_|gh[pousr]_|gsk_)(?P<secret>[A-Za-z0-9]{20,}|\*{8})"),
    re.compile(r"(?<![\w/-])(?:github_pat_|nvapi-)(?P<secret>[\w-]{20,}|\*{8})"),
    re.compile(r"(?<![\w/-])(?:sk|glpat|xox[abprs])-(?P<secret>(?=[\w-]*[0-9])[\w-]{12,}|\*{8})"),
    re.compile(r"(?<![\w/-])eyJ(?P<secret>\w[\w-]{8,}\.[\w-]+\.[\w-]+|\*{8})"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?P<secret>(?:[^-]|-(?!----)){1,20000})"),
)
# A password that only its place in a command tells.
_IN_COMMAND = r"\b(?:[^\n;|&\\]|\\[^;|&]){0,1000}?\s"
_USERS = re.compile(
    rf"(?<![\w.-])(?:curl{_IN_COMMAND}(?:-u|--user|-U|--proxy-user)(?:=|{_BLANKS})*[\"']?[^\s:\"']*:"
    rf"|(?:mysql\w*|mariadb[\w-]*){_IN_COMMAND}-p(?=\S)"
    rf"|sshpass{_BLANKS}+-p{_BLANKS}*|(?:podman|docker){_BLANKS}+login{_IN_COMMAND}-p{_BLANKS}*)"
)
# Quotes, blanks, variables and what ends a word stay, for they tell how a line is read.
_LITERAL = re.compile(
    rf"(?P<kept>\$\{{\w+:?[-=+]|{_BRACES}|{_COMMAND}|`[^`\n]*`|\s|\\(?=[\s\"']|\Z)|[\"'`{{}};&|<>()#~])"
    r"|(?P<variable>\$(?:[A-Za-z_]\w*|[0-9@#?!])?)|(?:\\[^\s\"']|[^\s\"'`{};&|<>()#~$\\])+"
)


def hidden(text: str) -> str:
    """The text with a mask in place of each secret. It has the lines that it had."""
    out: list[str] = []
    at = 0
    for start, end in _secrets(text):
        out += [text[at:start], _masked(text[start:end])]
        at = end
    return "".join([*out, text[at:]])


def hidden_ledger(ledger: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """A ledger with a mask in place of the secrets in what the engine said in its own words."""
    warnings = [{**warning, "text": hidden(warning["text"])} for warning in ledger.get("warnings") or []]
    reason = ledger.get("reason")
    return {**ledger, "warnings": warnings, "reason": reason and {**reason, "text": hidden(reason["text"])}}


def masked_argv(argv: t.Sequence[str]) -> list[str]:
    """An argv list without its secrets. A word has one value, blanks and all."""
    shown: list[str] = []
    runtime = any(_RUNTIME.search(word) for word in argv)
    for before, word in zip(["", *argv], argv):
        named = re.match(rf"(?i)(?:-e=?|--env=)?{SECRET_NAME}=", word)
        flag = re.fullmatch(rf"(?i){_FLAG}", before)
        kept = "" if flag or not named else named[0]
        if not flag and not named:
            shown.append(hidden(word))
        elif _is_none(f"{before}=" if flag else kept, word[len(kept) :], runtime):
            shown.append(word)
        else:
            shown.append(kept + MASK)
    return shown


def put_back(text: str, there: str) -> str:
    """A text that was hidden, with the secrets that the file ``there`` has in the same lines.

    Raises RadianceError ``secret_missing`` where it has none for a line.
    """
    kept: dict[str, list[str]] = {}
    for shown, line in zip(hidden(there).split("\n"), there.split("\n")):
        kept.setdefault(shown, []).append(line)
    lines = text.split("\n")
    masks = _lines_of_masks(text) if MASK in text else set()
    for number, line in enumerate(lines):
        if MASK not in line:
            continue
        if kept.get(line):
            lines[number] = kept[line].pop(0)
        elif number in masks and not line.startswith("#"):
            raise RadianceError(
                f"line {number + 1} holds a secret, {line.strip()!r}, which the file there does not have. Secrets are "
                "not carried from one machine to another: write the line into it yourself.",
                code="secret_missing",
            )
    return "\n".join(lines)


def _lines_of_masks(text: str) -> set[int]:
    """The lines, counted from 0, whose mask stands for a secret: a text may have such a row of stars of its own."""
    out = set()
    for start, end in _secrets(text):
        first = text.count("\n", 0, start)
        out |= {first + number for number, part in enumerate(text[start:end].split("\n")) if MASK in part}
    return out


def _masked(secret: str) -> str:
    written = False

    def one(found: re.Match[str]) -> str:
        nonlocal written
        piece = found[0]
        if found["kept"] is not None:
            return piece
        if found["variable"] is not None:
            # Behind a text, a $ may be a sign of it: no reader but a shell takes it for a variable.
            return "$" + MASK if written and piece != piece.upper() else piece
        written = True
        return MASK

    return _LITERAL.sub(one, secret)


def _secrets(text: str) -> list[tuple[int, int]]:
    """Where secrets begin and end, in their order and apart from each other."""
    named = [(found.start(), *found.span("secret")) for found in _MEMBER.finditer(text)]
    named += [(*found.span(), _end_of_assigned(text, found)) for found in _ASSIGNED.finditer(text)]
    named += [(*found.span(), _end_of_word(text, found.end(), False)) for found in _OPTION.finditer(text)]
    named += [(*found.span(), _end_of_header(text, found)) for found in _HEADER.finditer(text)]
    runtime = bool(_RUNTIME.search(text))
    spans = [(at, end) for begin, at, end in named if not _is_none(text[begin:at], text[at:end], runtime)]
    spans += [found.span("secret") for form in _FORMS for found in form.finditer(text)]
    spans += [(found.end(), _end_of_word(text, found.end(), True)) for found in _USERS.finditer(text)]
    spans += [(found.end(), _end(_TO_BRACE, text, found.end())) for found in _DEFAULT.finditer(text)]
    out: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        elif start < end:
            out.append((start, end))
    return out


def _is_none(before: str, value: str, runtime: bool) -> bool:
    """Whether what stands behind a secret's name is none; ``runtime`` is whether podman or docker is called there."""
    return bool((_OF_A_FILE.search(before) and _PATH.fullmatch(value)) or (runtime and _OF_A_RUNTIME.fullmatch(before)))


def _end_of_assigned(text: str, found: re.Match[str]) -> int:
    begin, at = found.span()
    line = text[max(text.rfind("\n", 0, begin) + 1, begin - _LOOKED_BACK) : begin]
    if _IN_QUERY.search(line) and text[at : at + 1] not in ("'", '"'):
        return _end(_TO_AMPERSAND, text, at)
    if _quote(line):
        return _end_of_word(text, at, whole=line.endswith(_quote(line)))
    lines = None if line.strip() else _LINES.match(text, at)
    end = _end_of_word(text, lines.end() if lines else at, whole=False)
    # In an env it is the whole line.
    alone = not line.strip("# \t") and found[0][0] not in " \t" and not text.endswith("\\\n", 0, begin)
    return end if not alone or _GOES_ON.match(text, end) else _end(_TO_LINE_END, text, end)


def _end_of_header(text: str, found: re.Match[str]) -> int:
    begins_line = found.start() == text.rfind("\n", 0, found.start()) + 1
    return _end(_TO_LINE_END, text, found.end()) if begins_line else _end_of_word(text, found.end(), whole=True)


def _end_of_word(text: str, at: int, whole: bool) -> int:
    """Where the word ends that begins there; inside of quotes, with ``whole``, where these do."""
    quote = _quote(text[max(text.rfind("\n", 0, at) + 1, at - _LOOKED_BACK) : at])
    pattern = (_TO_QUOTE if whole else _TO_BLANK)[quote] if quote else _WORD
    return _end(pattern, text, at)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _quote(line: str) -> str:
    """The quote that is open at the end of the beginning of a line."""
    quote = ""
    for found in re.findall(r"\\.|['\"]", "" if line.lstrip().startswith("#") else line):
        if found in ("'", '"') and quote in ("", found):
            quote = "" if quote else found
        elif found == "\\'" and quote == "'":
            quote = ""
    return quote
