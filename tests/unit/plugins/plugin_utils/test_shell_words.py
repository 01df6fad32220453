# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hand-written serve script, read from its text: the same words as a real shell makes of it, or a refusal by line."""

from __future__ import annotations

import pathlib
import subprocess
import typing as t

import hypothesis
import hypothesis.strategies as st
import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import hidden, masked_argv
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._serve_script import engine_flags, read_script

ENV = {"SLAB": "24000", "POOL": "5120", "EMPTY": "", "MODEL": "/models/q.rad"}
ENV_TEXT = "".join(f"{name}={value}\n" for name, value in ENV.items())
# Prints its words, one a line, so that a script ends by it as by an engine.
SHOW = "show"


def read(text: str, path: str = "/srv/q/scripts/serve.sh", env_path: str = "/srv/q/scripts/q.env") -> t.Any:
    return read_script(text, path, ENV, env_path)


def words(text: str, **paths: str) -> list[str]:
    return [field.text for field in read(text, **paths).command]


# Each ends in the words of SHOW. All of it is read by sh and by bash as well.
SCRIPTS = [
    """\
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
. "$here/q.env"
exec show "$SLAB" ${POOL} "$here/../m:/m"
""",
    """\
set -eu
set -a; . "$(dirname "$0")/q.env"; set +a
exec show --a "${SLAB:-1}" "${EMPTY:-2}" "${EMPTY-3}" "${NOT-4}"
""",
    """\
cd "$(dirname "$0")" || exit 1
. ./q.env
exec show ${SLAB:+--slab "$SLAB"} ${EMPTY:+--gone "$EMPTY"} ${EMPTY+here}
""",
    """\
here=${0%/*}
. "$here"/q.env # behind it
exec show a\\
  b\\ c 'd  $e' "f \\$g \\\\ \\"" --x="$SLAB"y \\
  --last
""",
    """\
. "$(cd "$(dirname "$0")/../scripts" >/dev/null 2>&1 && pwd -P)/q.env"
export LC_ALL=C
umask 022
exec show "" x"" ''
""",
    """\
here=$(dirname -- "$0")
. "$here/q.env"
exec show "$@" "$SLAB" >&2 2>&1
""",
    """\
a=1; b="$a 2"
# a comment with a ' and a "
. "$(dirname "$0")/q.env" || exit 1
LATE=3 exec show "$b" $a "${b}"#no
""",
    # Blanks that part no words, a brace that nothing ends by, a default that an assignment keeps whole.
    """\
#!/bin/sh
. "$(dirname "$0")/q.env"
x=${EMPTY:-a b}
export y=$SLAB z
exec show one\u00a0word ${EMPTY:-no\u00a0word} "a\\}b" "${EMPTY:-c\\}d}" "$x" "$y"
""",
]


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_the_words_are_those_of_a_real_shell(shell: str, script: str, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "q.env").write_text(ENV_TEXT)
    (folder / "serve.sh").write_text(script)
    (tmp_path / SHOW).write_text("#!/bin/sh\nfor word do printf '%s\\n' \"$word\"; done\n")
    (tmp_path / SHOW).chmod(0o755)
    done = subprocess.run(
        [shell, str(folder / "serve.sh")],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=30,
        check=True,
    )
    paths = {"path": str(folder / "serve.sh"), "env_path": str(folder / "q.env")}
    assert words(script, **paths) == [SHOW, *done.stdout.split("\n")[:-1]]


PLAIN = st.text("abcXYZ019._:/@%+=,- '\"$\\#;&|<>(){}*?[]!~^", max_size=12)


@hypothesis.given(st.lists(PLAIN, min_size=1, max_size=4))
def test_what_is_quoted_is_what_it_is(texts: list[str]) -> None:
    quoted = ["'" + text.replace("'", "'\\''") + "'" for text in texts]
    assert words(f"exec engine {' '.join(quoted)}\n") == ["engine", *texts]


@hypothesis.given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert read(text).command
    except RadianceError as error:
        assert error.code == "script_not_understood" and error.text.startswith("line ")


READS = ". /srv/q/scripts/q.env\n"
REFUSED = [
    ("if [ -f x ]; then\n  y=1\nfi\nexec e\n", 1, "`if`"),
    ("set -eu\nfor x in 1 2; do :; done\n", 2, "`for`"),
    ("exec e `date`\n", 1, "backticks"),
    ("x=$(date)\nexec e\n", 1, "$(date)"),
    ("exec e \\\n  --port $((8000 + 1))\n", 2, "calculates"),
    ("args=(a b)\nexec e\n", 1, "array"),
    ("exec e *.rad\n", 1, "'*'"),
    ("exec e ~/models\n", 1, "~"),
    ("exec e $UNSET\n", 1, "UNSET"),
    ("x='a b'\nexec e $x\n", 2, 'Write "$x"'),
    ("x=1\nx=2\nexec e\n", 2, "line 1"),
    ("exec e " + "${a:-" * 3000 + "}" * 3000, 1, "more than 16 expansions"),
    (":\n" * 40000 + "exec e\n", 1, "80,007 characters, and up to 65,536"),
    ('x=1\nexec e --api-key $(cat "a)\n', 2, "never closed"),
    (READS + "SLAB=1\nexec e\n", 2, "/srv/q/scripts/q.env"),
    ("SLAB=1\n" + READS + "exec e\n", 1, "/srv/q/scripts/q.env"),
    (READS + READS + "exec e\n", 2, "second time"),
    (". /etc/default/q\nexec e\n", 1, "/etc/default/q"),
    (". ./q.env\nexec e\n", 1, "depends on the folder"),
    (READS + "podman run x\n", 2, "`podman`"),
    (READS + "true && exec e\n", 2, "`true`"),
    (READS + ": && exec e\n", 2, "'&&'"),
    (READS + ": || exec e\n", 2, "||"),
    (READS + "exec e | tee log\n", 2, "'|'"),
    (READS + "exec e &\n", 2, "'&'"),
    (READS + "exec -a name e\n", 2, "option"),
    (READS, 1, "`exec`"),
    ("exec e <<X\nX\n", 1, "here-document"),
    ("exec e 'open\n", 1, "never closed"),
    ('exec e "open\n', 1, "never closed"),
    ("exec e ${SLAB%0}\n", 1, "cuts"),
    ("exec e ${SLAB/0/1}\n", 1, "expansion"),
    ("f() { :; }\nexec e\n", 1, "function"),
    # What one shell makes otherwise than the other, or than it looks.
    ("exec e \\\n  --model m\r\n", 2, "carriage return"),
    ("exec e 10>log\n", 1, "two digits"),
    ('exec e "$\\\nSLAB"\n', 1, "end of the line"),
    ('exec e "$SL\\\nAB"\n', 1, "end of the line"),
    (": ${X:=5}\nexec e\n", 1, "${X:=…}"),
    ("exec e --model=~/m\n", 1, "~"),
    ('x=~/m\nexec e "$x"\n', 1, "~"),
    ('x=/m:~/n\nexec e "$x"\n', 1, "~"),
    ('exec e "${@:-x}"\n', 1, "$@"),
    ('exec e "${#:-x}"\n', 1, "$#"),
    ("exec e ${0%'/*'}\n", 1, "cuts"),
    ("#!/bin/zsh\nexec e\n", 1, "interpreter"),
    ("#!/usr/bin/python3\nexec e\n", 1, "interpreter"),
    ('export "SLAB=1"\nexec e\n', 1, "`export`"),
    ("export -n X=1\nexec e\n", 1, "`export`"),
    ("x='a b'\nexport y=$x\nexec e\n", 2, 'Write "$x"'),
    ("X=1 :\nexec e\n", 1, "where sh keeps it"),
    ("X=1 " + READS + "exec e\n", 1, "where sh keeps it"),
    ("X=1 exec >&2\nexec e\n", 1, "where sh keeps it"),
    ("printf -v X 5\nexec e\n", 1, "`printf`"),
    ("IFS=,\nexec e\n", 1, "IFS"),
    ("set pipefail\nexec e\n", 1, "`set`"),
    ("set -e pipefail\nexec e\n", 1, "`set`"),
    ("set -k\nexec e a=b\n", 1, "`set`"),
    ("set -n\nexec e\n", 1, "`set`"),
    ("mkdir x || true |\nexec e\nexec f\n", 1, "'|'"),
    ('exec "$@"\n', 1, "no command"),
    ('exec e "$(cat #x)"\n', 1, "command"),
    ('exec e "$(cat\n/srv/key)"\n', 1, "command"),
]


@pytest.mark.parametrize(("script", "line", "names"), REFUSED)
def test_what_is_not_read_is_refused_by_its_line(script: str, line: int, names: str) -> None:
    with pytest.raises(RadianceError) as refused:
        read(script)
    assert refused.value.text.startswith(f"line {line}: ") and names in refused.value.text


def test_an_env_that_says_how_values_are_parted_is_refused() -> None:
    with pytest.raises(RadianceError, match="line 1: IFS decides"):
        read_script(READS + "exec e $LIST\n", "/srv/q/scripts/serve.sh", {"IFS": ","}, "/srv/q/scripts/q.env")


@pytest.mark.parametrize(
    "words", ["#!/bin/sh", "#! /bin/bash -eu", "#!/usr/bin/env bash", "#!/usr/bin/dash", "set -euo pipefail"]
)
def test_how_a_script_is_begun_changes_no_word(words: str) -> None:
    assert [field.text for field in read(words + "\nexec e --x\n").command] == ["e", "--x"]


def test_each_flag_knows_its_line_and_the_variables_in_its_value() -> None:
    script = read(
        READS + 'exec e --slab "$SLAB" \\\n  --pool=$POOL --both "$SLAB-$POOL" --tp 2 --flag ${EMPTY:+--opt "$EMPTY"}\n'
    )
    flags = {
        name: (value, set(field.names), field.written, field.line)
        for name, (value, field) in engine_flags(script.command).items()
    }
    assert flags == {
        "slab": ("24000", {"SLAB"}, False, 2),
        "pool": ("5120", {"POOL"}, True, 3),
        "both": ("24000-5120", {"SLAB", "POOL"}, True, 3),
        "tp": ("2", set(), True, 3),
        "flag": ("", set(), True, 3),
    }
    # A flag that an empty variable leaves out is known all the same.
    assert script.optional == {"opt": "EMPTY"}


def test_the_file_of_a_key_is_named_and_not_read() -> None:
    script = read('here=$(dirname "$0")\nexec e --api-key "$(cat "$here/../q.key")"\n')
    assert [(field.text, field.secret) for field in script.command[-2:]] == [("--api-key", False), ("", True)]
    assert script.key_file == "/srv/q/q.key"


def test_a_secret_that_was_hidden_is_a_word_like_another() -> None:
    serve = (
        '#!/bin/sh\nexec podman run -e HF_TOKEN=hush -eA_KEY="hush a" --env=B_KEY=hush i --api-key "hush hush" --tp 2\n'
    )
    words = [field.text for field in read_script(hidden(serve), "/s/serve.sh", {}, "/s/q.env").command]
    runs = ["podman", "run", "-e", "HF_TOKEN=hush", "-eA_KEY=hush a", "--env=B_KEY=hush", "i", "--api-key", "hush hush"]
    assert masked_argv(words) == masked_argv([*runs, "--tp", "2"])
    assert masked_argv(runs)[4:6] == ["-eA_KEY=********", "--env=B_KEY=********"]
    assert "hush" not in " ".join(words)


# Each with the words that a shell makes of it.
SECRET_SCRIPTS = [
    (
        'exec e -e A_TOKEN="${A_TOKEN:-SECRET}" --api-key ${A_KEY:-SECRET}\n',
        ["e", "-e", "A_TOKEN=SECRET", "--api-key", "SECRET"],
    ),
    ("A_KEY='SECRET'; export A_KEY\nexec e --api-key \"$A_KEY\" --tp 2\n", ["e", "--api-key", "SECRET", "--tp", "2"]),
    ('exec e ${EMPTY:-} -e "DB=postgres://u:SECRET@h:1/d"\n', ["e", "-e", "DB=postgres://u:SECRET@h:1/d"]),
    ('exec e --header="Authorization: Bearer SECRET" i\n', ["e", "--header=Authorization: Bearer SECRET", "i"]),
    ("exec e -H 'X-Api-Key: SECRET' i\n", ["e", "-H", "X-Api-Key: SECRET", "i"]),
    ('exec e --x \'{"api_key": "SECRET", "n": 1}\' i\n', ["e", "--x", '{"api_key": "SECRET", "n": 1}', "i"]),
    ('exec curl -fsS -u "me:SECRET" i\n', ["curl", "-fsS", "-u", "me:********", "i"]),
    ("exec e --api-key \\\n  SECRET \\\n  --tp 2\n", ["e", "--api-key", "SECRET", "--tp", "2"]),
]


# A word that begins as an option is one, for the engine too.
SECRETS = st.from_regex("[A-Za-z0-9_.+%,=-]{0,20}[A-Za-z0-9]", fullmatch=True).filter(lambda text: text[:2] != "--")


@pytest.mark.parametrize(("serve", "runs"), SECRET_SCRIPTS)
@hypothesis.given(secret=SECRETS)
@hypothesis.settings(max_examples=20)
def test_a_script_without_its_secrets_gives_what_runs(serve: str, runs: list[str], secret: str) -> None:
    shown = hidden(serve.replace("SECRET", secret))
    assert shown == serve.replace("SECRET", "********")
    words = [field.text for field in read_script(shown, "/s/serve.sh", {"EMPTY": ""}, "/s/q.env").command]
    assert masked_argv(words) == masked_argv([word.replace("SECRET", secret) for word in runs])
