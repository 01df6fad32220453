# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What rate_probe and a public benchmark client say of one engine whose rates are known, and boundary_probe's memory.

    python3 tests/bench/rates.py [--speedup 1] [--prompt-tokens 20000] [--generate-tokens 512] [--runs 2] [--no-client]

The engine is the rehearsal engine. Both ask the same running engine in turns: cold prompts, a warm head, and, the
client alone, with thinking (ours goes by completions, which do not think, and reads reasoning as it reads text). A row
has each figure as a part of the truth. The client is llama-benchy of the Python index, in an environment of its own
under .cache/. As published it sends a field that no release up to 1.2 honours; the bench shows what becomes of that,
and then leaves the field out. The exit status is 1 where a figure of ours is more than 5 % off, or boundary_probe
takes 64 MiB or more for eight prompts of 200,000 tokens.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import typing as t
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLLECTIONS = ROOT / "collections"
PACKAGE = COLLECTIONS / "ansible_collections" / "kvfleet" / "radiance"
sys.path[:0] = [str(COLLECTIONS), str(ROOT / "extensions" / "rehearsal")]

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import corpus, rates  # noqa: E402
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import read  # noqa: E402
from engine.world import World  # noqa: E402

CLIENT = ROOT / ".cache" / "bench-rates"
REQUIREMENTS = pathlib.Path(__file__).with_name("rates-requirements.txt")
WEIGHTS, DEPTH = 24_000, 2
FLAGS = {
    "--tp": "2",
    "--max-model-len": "200000",
    "--kv-cache-dtype": "fp8",
    "--num-speculative-tokens": str(DEPTH),
    "--max-num-batched-tokens": "2048",
}
PART, PEAK_MIB = 0.05, 64
BOOK_CHARS = 600_000
URL = "http://book.invalid/"

# In the client's own environment: the book in pieces of about the engine's size, so that the client can size prompts.
TOKENIZER = r"""
import sys
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
text = open(sys.argv[1]).read()
cut = pre_tokenizers.Split(Regex(r" ?[A-Za-z]{1,3}|[0-9]{1,3}|\s+|."), "isolated")
pieces = sorted({piece for piece, _ in cut.pre_tokenize_str(text)} | {chr(n) for n in range(32, 127)} | {"?"})
tokenizer = Tokenizer(models.WordLevel({piece: n for n, piece in enumerate(pieces)}, unk_token="?"))
tokenizer.pre_tokenizer, tokenizer.decoder = cut, decoders.Fuse()
tokenizer.save(sys.argv[2])
"""
# The client with the fields left out that its first argument names.
TRIMMED = """
import sys
from llama_benchy import __main__ as program, client
left_out, sys.argv = sys.argv[1].split(), sys.argv[1:]
whole = client.LLMClient._build_generation_payload
def trimmed(self, *args):
    return {name: value for name, value in whole(self, *args).items() if name not in left_out}
client.LLMClient._build_generation_payload = trimmed
program.main()
"""


@contextlib.contextmanager
def engine(folder: pathlib.Path, speedup: float, weights: int, kv: int, sequences: int) -> t.Iterator[str]:
    """A rehearsal engine of the default world, so many times as fast; its URL."""
    folder.mkdir()
    (folder / "model.rad").touch()
    (folder / "model.world.json").write_text(json.dumps({"load_speedup": 10_000, "serve_speedup": speedup}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = {
        **FLAGS,
        "--max-num-seqs": str(sequences),
        "--host-pool-mib": "32768",
        "--vram-weights-mib": str(weights),
        "--vram-kv-mib": str(kv),
        "--host": "127.0.0.1",
        "--port": str(port),
    }
    argv = [str(ROOT / "extensions" / "rehearsal" / "radiance.py"), "--model", str(folder / "model.rad")]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, *argv, *(word for flag in flags.items() for word in flag)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        end = time.monotonic() + 60
        while b"server: listening on" not in (folder / "log").read_bytes():
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit((folder / "log").read_text()[-2000:])
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def installed() -> pathlib.Path | None:
    """The Python of the client's environment, made or renewed where its requirements have changed."""
    python, stamp = CLIENT / "bin" / "python", CLIENT / "installed"
    wanted = REQUIREMENTS.read_text()
    if not stamp.is_file() or stamp.read_text() != wanted:
        shutil.rmtree(CLIENT, ignore_errors=True)
        venv.create(CLIENT, with_pip=True)
        done = subprocess.run(
            [python, "-m", "pip", "install", "-q", "--only-binary", ":all:", "-r", REQUIREMENTS], check=False
        )
        if done.returncode:
            return None
        stamp.write_text(wanted)
    return python


class Row(t.NamedTuple):
    """Figures in tokens/s; None where not measured, or not claimed."""

    name: str
    prefill: float | None
    decode: float | None
    says: str


def ours(url: str, asked: argparse.Namespace) -> list[Row]:
    """What rate_probe says, in its full form: cold, and the second turn."""
    params = {
        "endpoint": url,
        "model": None,
        "timeout": 600,
        "prompt_tokens": asked.prompt_tokens,
        "generate_tokens": asked.generate_tokens,
        "runs": asked.runs,
        "form": "full",
    }
    found = rates.probe(read(params, None))["rates"]
    turn = found["second_turn"] or {"decode_tps": None, "cached_tokens": None, "says": "not asked"}
    cold = Row("rate_probe, cold", found["prefill_tps"], found["decode_tps"], f"{found['verdict']}: {found['says']}")
    return [cold, Row("rate_probe, warm", None, turn["decode_tps"], f"no prefill rate is claimed: {turn['says']}")]


class Client:
    """The public client: its environment, its book and its tokenizer."""

    def __init__(self, python: pathlib.Path, folder: pathlib.Path, asked: argparse.Namespace) -> None:
        self._python, self._folder, self._asked = python, folder, asked
        book = folder / ".cache" / "llama-benchy" / (hashlib.md5(URL.encode()).hexdigest() + ".txt")
        book.parent.mkdir(parents=True)
        book.write_text("".join(corpus.Prompt(corpus.Filler(7, BOOK_CHARS)).parts()))
        subprocess.run([python, "-c", TOKENIZER, book, folder / "tokenizer.json"], check=True)

    def run(self, url: str, left_out: str, *more: str) -> tuple[list[dict[str, t.Any]], str]:
        """Its results, and what it printed."""
        saved = self._folder / "result.json"
        saved.unlink(missing_ok=True)
        sizes = {"--pp": self._asked.prompt_tokens, "--tg": self._asked.generate_tokens, "--runs": self._asked.runs}
        done = subprocess.run(
            [self._python, "-c", TRIMMED, left_out, "--base-url", f"{url}/v1", "--model", "model", "--book-url", URL]
            + ["--tokenizer", str(self._folder / "tokenizer.json"), "--skip-coherence"]
            + ["--save-result", str(saved), "--format", "json", "--extra-body", "ignore_eos=true"]
            + [str(word) for size in sizes.items() for word in size]
            + list(more),
            env={**os.environ, "HOME": str(self._folder), "HF_HUB_OFFLINE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        content = json.loads(saved.read_text()) if saved.is_file() else {}
        return list(content.get("benchmarks") or []), done.stdout + done.stderr

    def row(self, name: str, url: str, *more: str) -> Row:
        """Its figures of one case; the last benchmark is the one whose head is warm, where there is one."""
        found, printed = self.run(url, "return_token_ids", *more)
        if not found:
            return Row(f"llama-benchy, {name}", None, None, " ".join(printed.split())[-300:])

        def mean(metric: str) -> float | None:
            value = (found[-1].get(metric) or {}).get("mean")
            return float(value) if value else None

        return Row(f"llama-benchy, {name}", mean("pp_throughput"), mean("tg_throughput"), "mean of its runs")


def theirs(url: str, folder: pathlib.Path, asked: argparse.Namespace) -> list[Row]:
    """What the public client says: as published, cold, warm, and with thinking."""
    python = installed()
    if python is None:
        return [Row("llama-benchy", None, None, "not installed: see what pip printed above")]
    client = Client(python, folder, asked)
    found, printed = client.run(url, "", "--no-warmup")
    why = next((line for line in printed.splitlines() if "HTTP" in line), "").strip()[:200]
    as_published = "it gives figures" if any(one.get("pp_throughput") for one in found) else f"no figure: {why}"
    still = ["--extra-body", 'chat_template_kwargs={"enable_thinking":false}']
    return [
        Row("llama-benchy, as published", None, None, as_published),
        client.row("cold", url, *still),
        client.row("warm", url, *still, "--enable-prefix-caching", "--depth", str(asked.prompt_tokens)),
        client.row("thinking", url),
    ]


def peak_of_boundary(folder: pathlib.Path) -> tuple[float, str]:
    """Peak memory in MiB of the module for eight prompts of 200,000 tokens, its Python included, and its verdict."""
    with engine(folder, 100, 17_500, 13_100, 8) as url:
        options = {"endpoint": url, "timeout": "600"}
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(PACKAGE / "plugins" / "modules" / "boundary_probe.py")],
            input=json.dumps({"ANSIBLE_MODULE_ARGS": options}),
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(COLLECTIONS), *sys.path])},
            capture_output=True,
            text=True,
            check=True,
        )
    printed, peak = done.stdout.rsplit("\n", 2)[0], done.stdout.rsplit("\n", 2)[1]
    boundary = json.loads(printed)["boundary"]
    return int(peak) / 1024, f"{boundary['verdict']}: {boundary['says']}"


# A child of a child, so that only the module is measured.
PEAK = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, sys.argv[1]], stdin=sys.stdin, capture_output=True, text=True)
sys.stderr.write(done.stderr)
print(done.stdout.strip())
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def part(value: float | None, truth: float) -> str:
    return "-" if value is None else f"{value / truth:.3f}"


def main() -> int:
    """Exit status 0 where ours holds."""
    parser = argparse.ArgumentParser(description="Rates by rate_probe and by a public client, against the truth.")
    parser.add_argument("--speedup", type=float, default=1.0, help="of the engine's rates")
    parser.add_argument("--prompt-tokens", type=int, default=20_000)
    parser.add_argument("--generate-tokens", type=int, default=512)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--no-client", action="store_true", help="ours alone")
    asked = parser.parse_args()
    world = World(serve_speedup=asked.speedup)
    step_ms = world.decode_step_ms + world.decode_draft_ms * DEPTH
    prefill = world.prefill_tps(WEIGHTS) * asked.speedup
    decode = (1 + world.draft_acceptance * DEPTH) * 1000 / step_ms * asked.speedup
    with tempfile.TemporaryDirectory(prefix="kvfleet-bench-") as made:
        folder = pathlib.Path(made)
        (folder / "home").mkdir()
        with engine(folder / "engine", asked.speedup, WEIGHTS, 5_120, 3) as url:
            rows = ours(url, asked)
            if not asked.no_client:
                rows += theirs(url, folder / "home", asked)
        print(f"the truth: prefill {prefill:,.0f} tokens/s, decode {decode:,.1f} tokens/s\n")
        print(f"{'':28} {'prefill':>10} {'of truth':>8} {'decode':>9} {'of truth':>8}   says")
        for row in rows:
            cells = [f"{value:,.1f}" if value is not None else "-" for value in (row.prefill, row.decode)]
            print(
                f"{row.name:28} {cells[0]:>10} {part(row.prefill, prefill):>8} {cells[1]:>9} "
                f"{part(row.decode, decode):>8}   {row.says}"
            )
        peak, says = peak_of_boundary(folder / "boundary")
    print(f"\nboundary_probe, 8 x 200,000 tokens: peak {peak:.1f} MiB; {says}")
    own = [(row.prefill, prefill) for row in rows[:1]] + [(row.decode, decode) for row in rows[:2]]
    good = all(value is not None and abs(value / truth - 1) <= PART for value, truth in own) and peak < PEAK_MIB
    print(f"\ngoals: ours within {100 * PART:g} % of the truth, peak < {PEAK_MIB} MiB: {'met' if good else 'missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
