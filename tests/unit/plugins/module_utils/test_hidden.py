# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets of somebody's own files: hidden where they are read, and there again where they are written."""

from __future__ import annotations

import pathlib
import time

import hypothesis
import hypothesis.strategies as st
import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils import _env_file
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import MASK, hidden, masked_argv, put_back
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import files

TEXT = """\
# by hand
POOL_MIB=5120
HF_TOKEN=hf_abc/DEF
#OLD_API_KEY=sk-1
export DB_PASSWORD='a b'
exec e --api-key sk-2 --api-key-file /k --auth-token="x" --max-tokens 5
key=$(cat /k)
exec e --api-key "$key"
"""
HIDDEN = """\
# by hand
POOL_MIB=5120
HF_TOKEN=********
#OLD_API_KEY=********
export DB_PASSWORD='******** ********'
exec e --api-key ******** --api-key-file /k --auth-token="********" --max-tokens 5
key=$(cat /k)
exec e --api-key "$key"
"""


def test_what_has_the_name_of_a_secret_is_hidden_and_put_back() -> None:
    assert hidden(TEXT) == HIDDEN
    assert put_back(HIDDEN, TEXT) == TEXT
    # What was changed around it stays changed.
    assert put_back("# new\n" + HIDDEN.replace("5120", "6144"), TEXT) == "# new\n" + TEXT.replace("5120", "6144")


@hypothesis.given(st.text("aK=_'\" $*#-\\\r\n", max_size=60), st.sampled_from(["A_KEY=", "--a-key ", "# K_TOKEN=x\n"]))
def test_any_text_comes_back(text: str, secret: str) -> None:
    whole = text + secret + text + "b\n" + secret + "c"
    assert put_back(hidden(whole), whole) == whole


def test_a_secret_that_the_file_lacks_is_refused_by_its_line() -> None:
    with pytest.raises(RadianceError, match="line 3 holds a secret, 'HF_TOKEN=[*]{8}'") as refused:
        put_back(HIDDEN, TEXT.replace("HF_TOKEN", "OTHER_TOKEN"))
    assert refused.value.code == "secret_missing"
    # What we tell in a comment may have a mask of its own.
    assert put_back("# it ran --api-key ********\n", "") == "# it ran --api-key ********\n"


def test_an_env_reads_the_same_without_its_secrets() -> None:
    for line in ("HF_TOKEN=hf_abc\n", "HF_TOKEN='hf abc'\n", "HF_TOKEN=a b\n", "HF_TOKEN=\n", "HF_TOKEN=a;b\n"):
        assert _env_file.read_env(hidden(line)).errors == _env_file.read_env(line).errors


def test_a_switch_keeps_the_secrets_that_a_file_has(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "q.env"
    path.write_bytes(b"# na\xefve\nPOOL_MIB=5120\nHF_TOKEN=hf_abc\n")
    wanted = files.wanted({"dest": str(path), "content": "POOL_MIB=6144\nHF_TOKEN=********\n"})
    (change,) = files.compare([wanted])
    assert change.after == b"POOL_MIB=6144\nHF_TOKEN=hf_abc\n"
    path.write_bytes(change.after)
    assert files.compare([wanted]) == []


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            "exec podman run -e HF_TOKEN=hush -eA_KEY=hush img",
            "exec podman run -e HF_TOKEN=******** -eA_KEY=******** img",
        ),
        ("  --env=HF_TOKEN='hush hush' \\", "  --env=HF_TOKEN='******** ********' \\"),
        ('  --api-key "hush hush" \\', '  --api-key "******** ********" \\'),
        ("HF_TOKEN=hush exec e --port $PORT", "HF_TOKEN=******** exec e --port $PORT"),
        ("export A=1 HF_TOKEN=hush", "export A=1 HF_TOKEN=********"),
        ("exec e -e HF_TOKEN=$HF_TOKEN --max-tokens 5 -e MAX_TOKENS=5", None),
    ],
)
def test_a_secret_in_the_words_of_a_command(line: str, shown: str | None) -> None:
    assert hidden(line) == (shown or line)
    assert put_back(hidden(line), line) == line
    if shown:
        with pytest.raises(RadianceError):
            put_back(shown, "")


SECRET = "hunter2hunter2"


@pytest.mark.parametrize(
    "line",
    [
        f"API_KEY={SECRET}",
        f"export HF_TOKEN={SECRET}",
        f"RADIANCE_API_KEY='{SECRET}'",
        f"exec radiance --api-key {SECRET} --port 8000",
        f"exec radiance --api-key={SECRET}",
        f"api_key: {SECRET}",
        f'  "password": "{SECRET}"',
        f"curl -H 'Authorization: Bearer {SECRET}' http://127.0.0.1",
        f"OTHER=sk-{SECRET}",
        f"DB_PASSWORD={SECRET} and more {SECRET}",
    ],
)
def test_a_secret_is_masked(line: str) -> None:
    assert SECRET not in hidden(f"PORT=8000\n{line}\nMODEL=/m\n")
    assert hidden(f"PORT=8000\n{line}\nMODEL=/m\n").startswith("PORT=8000\n")
    assert hidden(f"PORT=8000\n{line}\nMODEL=/m\n").endswith("\nMODEL=/m\n")


@pytest.mark.parametrize(
    "line",
    [
        "NUM_SPECULATIVE_TOKENS=2",
        "MAX_TOKENS=512",
        "API_KEY_FILE=/etc/radiance/key",
        'exec radiance --api-key "$API_KEY"',
        "exec radiance --num-speculative-tokens 2",
        "KV_CACHE_DTYPE=fp8",
    ],
)
def test_what_is_no_secret_is_shown(line: str) -> None:
    assert hidden(line) == line


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        # A default of a variable
        ('exec e -e T="${HF_TOKEN:-hush}" --tp 2', 'exec e -e T="${HF_TOKEN:-********}" --tp 2'),
        (': "${HF_TOKEN:=hush}"', ': "${HF_TOKEN:=********}"'),
        ("export HF_TOKEN=${HF_TOKEN-hush}", "export HF_TOKEN=${HF_TOKEN-********}"),
        ("x=${API_KEY:+hush}", "x=${API_KEY:+********}"),
        ("exec e ${API_KEY:+--api-key hush} --tp 2", "exec e ${API_KEY:+--api-key ********} --tp 2"),
        ("TOKEN=${OTHER:-hush}", "TOKEN=${OTHER:-********}"),
        ('TOKEN="hush${A}hush"', 'TOKEN="********${A}********"'),
        # A URL
        ("DB=postgres://u:hush@h/db", "DB=postgres://u:********@h/db"),
        ('exec e --url "redis://:hu!sh@h:1/0" --tp 2', 'exec e --url "redis://:********@h:1/0" --tp 2'),
        ("DB=postgres://u:${PW:-hush}@h/db", "DB=postgres://u:${PW:-********}@h/db"),
        ("x?access_token=hush&y=1", "x?access_token=********&y=1"),
        # A header
        ('curl -H "Authorization: Bearer hush" x', 'curl -H "Authorization: Bearer ********" x'),
        ('curl --header="X-Api-Key: hush" x', 'curl --header="X-Api-Key: ********" x'),
        (r"curl -H Authorization:\ Basic\ hush x", r"curl -H Authorization:\ Basic\ ******** x"),
        ('AUTH="Bearer hush"', 'AUTH="Bearer ********"'),
        # An assignment, and what follows it
        ("KEY=hush; export KEY", "KEY=********; export KEY"),
        ("KEY=hush && export KEY", "KEY=******** && export KEY"),
        ("KEY=hush;export KEY", "KEY=********;export KEY"),
        ("KEY=hush # of the hub", "KEY=******** # of the hub"),
        ("KEY=hush;hush hush", "KEY=********;******** ********"),
        ("HF_TOKEN=hush e --port 8000", "HF_TOKEN=******** e --port 8000"),
        ("export HF_TOKEN=hush OTHER", "export HF_TOKEN=******** OTHER"),
        ("Environment='HF_TOKEN=hush hush'", "Environment='HF_TOKEN=******** ********'"),
        ("DB_PASSWORD=hu$sh", "DB_PASSWORD=********$********"),
        ("DB_PASSWORD=\u043f\u0430\u0440", "DB_PASSWORD=********"),
        ("AWS_SECRET_ACCESS_KEY=hush", "AWS_SECRET_ACCESS_KEY=********"),
        ("PGPASSWORD=hush MYSQL_PWD=hush psql", "PGPASSWORD=******** MYSQL_PWD=******** psql"),
        ("KEY='hush\nhush'\nPORT=1", "KEY='********\n********'\nPORT=1"),
        # A word of a command
        ("curl -fsS -u 'me:hu sh' x", "curl -fsS -u 'me:******** ********' x"),
        ("curl \\\n --user=me:hush x", "curl \\\n --user=me:******** x"),
        ("sshpass -p hush ssh h", "sshpass -p ******** ssh h"),
        ("podman login -u me -p hush h", "podman login -u me -p ******** h"),
        ("e --api-key \\\n hush --password hush", "e --api-key \\\n ******** --password ********"),
        ("args=(--api-key hush --port 1)", "args=(--api-key ******** --port 1)"),
        ("sh -c 'e --api-key hush --port 1'", "sh -c 'e --api-key ******** --port 1'"),
        # A document in it
        ("cat <<E\napi_key: hush hush\nE", "cat <<E\napi_key: ******** ********\nE"),
        ("""e --config '{"api_key": "hush", "n": 1}'""", """e --config '{"api_key": "********", "n": 1}'"""),
        (r'e --config "{\"api_key\": \"hush\"}" --tp 2', r'e --config "{\"api_key\": \"********\"}" --tp 2'),
        ("-----BEGIN PRIVATE KEY-----\nhush\n-----END", "-----BEGIN PRIVATE KEY-----\n********\n-----END"),
        # A name that is counted, or goes on
        ("HF_TOKEN2=hush API_KEY_2=hush", "HF_TOKEN2=******** API_KEY_2=********"),
        ("SECRET_KEY_BASE=hush", "SECRET_KEY_BASE=********"),
        ("HF_TOKENS=hf_hush", "HF_TOKENS=********"),
        ("DB_PASS=hush SMTP_USER_PASS=hush e", "DB_PASS=******** SMTP_USER_PASS=******** e"),
        ("AUTH=Basic aHVzaDpodXNo", "AUTH=Basic ********"),
        ("PROXY_AUTH='Bearer hush'", "PROXY_AUTH='Bearer ********'"),
        ("x Basic aHVzaDpodXNoMQ==", "x Basic ********"),
        # Not the rest of a query
        ("curl 'https://h/x?token=hush&x=1'", "curl 'https://h/x?token=********&x=1'"),
        ('curl "https://h/x?n=1&api_key=hu$A&x=$B" y', 'curl "https://h/x?n=1&api_key=********$A&x=$B" y'),
        ("e &KEY='hush hush'", "e &KEY='******** ********'"),
        # What begins like a path may be a secret all the same
        ("AWS_SECRET_ACCESS_KEY=/hu/sh", "AWS_SECRET_ACCESS_KEY=********"),
        ("e --api-key /hu/sh", "e --api-key ********"),
        ("TLS_KEY=/hu/sh+=hush&!", "TLS_KEY=********&********"),
        ("mysql -u me -phush db", "mysql -u me -p******** db"),
        ("e --secret hush", "e --secret ********"),
        # A form
        ("X=hf_abcdefghijklmnopqrst", "X=hf_********"),
        ("X=sk-abc-def-ghi-1234567", "X=sk-********"),
    ],
)
def test_a_secret_wherever_a_script_or_an_env_has_it(line: str, shown: str) -> None:
    text = f"A=1\n{line}\nB=2\n"
    assert hidden(text) == f"A=1\n{shown}\nB=2\n"
    assert hidden(hidden(text)) == hidden(text)
    assert put_back(hidden(text), text) == text
    with pytest.raises(RadianceError) as refused:
        put_back(hidden(text), "A=1\nB=2\n")
    assert refused.value.code == "secret_missing"


def test_a_flag_that_asks_for_no_password_has_no_value() -> None:
    assert masked_argv(["systemctl", "--no-ask-password", "start", "x"])[2:] == ["start", "x"]
    assert masked_argv(["e", "--password", "hush", "x"])[2:] == ["********", "x"]


@pytest.mark.parametrize(
    "line",
    [
        "TOKENIZER=/models/tok",
        "EOS_TOKEN=2",
        "PUBLIC_KEY=/k",
        "--tokenizer /models/tok --max-tokens 5 --kv-cache-dtype fp8",
        "--api-key-file /k --prefix-caching-hash-algo sha256",
        "MODEL=/models/hf_checkpoints/x",
        "MODEL=/models/sk-4b-instruct-2507/hf_quantized_weights_v2",
        "podman run --user 1000:1000 -v hf-token:/root/token:ro i",
        "http://127.0.0.1:8000/v1",
        "git clone ssh://git@host/x",
        "DB=postgres://u:$PW@h/db",
        'curl -H "Authorization: Bearer $T" x',
        ': "${HF_TOKEN:?set it first}"',
        'exec e ${API_KEY:+--api-key "$API_KEY"} --tp 2',
        "TOKEN=$(cat /k)",
        'TOKEN="$a$b"',
        "e --api-key --tp 2",
        "systemctl --no-ask-password start x",
        'if [ "$API_KEY" = "" ]; then echo "no HF_TOKEN=" >&2; x="y"',
        'grep -q "^API_KEY=" file "x"',
        "# don't know the key: see the docs, where a bearer token is asked for",
        'echo "********"',
        "podman run --secret hf,type=env --secret=key i",
        "podman run \\\n --secret hf,type=env \\\n i",
        "FIRST_PASS=1",
        "e --multi-pass 2 --max-tokens-2 5",
        "PRIMARY_KEY=id FOREIGN_KEY=id e",
        "TLS_KEY=/etc/tls/key.pem",
        "export TLS_KEY='/etc/tls/key.pem'",
        'e --tls-key "$DIR/${HOST}.pem" --ssh-key ~/.ssh/id_ed25519 --tp 2',
        "tls_key: /etc/tls/key.pem",
        'e --config \'{"tls_key": "/etc/tls/key.pem"}\'',
        "AUTH=none",
        "mysql -p --port 1 -P 3306 db",
        "# Basic usage: see the docs",
    ],
)
def test_what_is_none_stays(line: str) -> None:
    assert hidden(f"A=1\n{line}\nB=2\n") == f"A=1\n{line}\nB=2\n"
    assert put_back(line, "") == line


def test_the_words_of_a_command_have_the_secrets_of_its_line() -> None:
    words = ["podman", "run", "--secret", "hf,type=env", "--secret=key", "-e", "TLS_KEY=/k/key.pem", "-eA_KEY_2=hush"]
    assert masked_argv(words) == [*words[:-1], "-eA_KEY_2=********"]
    assert masked_argv(["e", "--tls-key", "/k/key.pem", "--api-key", "/hu/sh", "--secret", "hush"]) == [
        *("e", "--tls-key", "/k/key.pem", "--api-key", "********", "--secret", "********")
    ]


PIECES = st.sampled_from(
    ["KEY=", "HF_TOKEN=", "export", "--api-key", "-H", "Authorization:", "Bearer", "://", "u:", "@", "curl", "-u", "-p"]
    + [
        "sshpass",
        "mysql ",
        "podman",
        "--secret ",
        "?token=",
        "AUTH=Basic ",
        "/k/",
        "${HF_TOKEN:-",
        "${A",
        "}",
        "$(",
        ")",
        "$a",
        "`",
        "'",
        '"',
        "\\",
        ";",
        "&",
        "#",
        "{",
        "[",
        "~",
        "x",
        "hush",
    ]
    + [
        "********",
        "sk-abc-def-ghi-1234567",
        "eyJ",
        "api_key:",
        '"api_key":',
        " ",
        "\n",
        "\t",
        "\r",
        "\\\n",
        "-----BEGIN PRIVATE KEY-----",
    ]
)


@hypothesis.given(st.lists(PIECES | st.text(max_size=3), max_size=25).map("".join))
@hypothesis.settings(max_examples=300)
def test_whatever_is_hidden_comes_back(text: str) -> None:
    assert put_back(hidden(text), text) == text
    assert hidden(text).count("\n") == text.count("\n")
    for was, shown in zip(text.split("\n"), hidden(text).split("\n")):
        assert was == shown or MASK in shown


MORE = ("mysql ", "KEY=/$a", "?key=", "AUTH=Basic ", "--secret ")


def test_a_long_line_takes_no_long_time() -> None:
    began = time.monotonic()
    for piece in ("A_", "KEY='", 'KEY="', "curl -u ", "${KEY:-", "$(", "a:", "-----BEGIN PRIVATE KEY-----", *MORE):
        hidden(piece * (16384 // len(piece)))
    assert time.monotonic() - began < 20
