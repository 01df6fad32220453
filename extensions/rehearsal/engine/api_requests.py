# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Request bodies: which fields are taken, what is refused and with which words, and the prompt in tokens."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

from .command_line import AUTO, Flags
from .machine import Machine
from .tokenizer import BOS, Tokenizer

_SAMPLER = frozenset(
    ("temperature", "top_p", "top_k", "min_p", "typical_p")
    + ("presence_penalty", "frequency_penalty", "repetition_penalty")
)
_IGNORED = {"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"}
MOST_STOPS = 16
MOST_STOP_BYTES = 1024
# Taken from 1.3.0 on.
_LLAMA = frozenset(("cache_prompt", "n_predict", "repeat_penalty", "logprobs", "top_logprobs", "id_slot", "n_probs"))
_BOTH = {"model", "max_tokens", "stop", "stream", "stream_options", "seed", "ignore_eos", "n"} | _SAMPLER | _IGNORED
COMPLETION_FIELDS: frozenset[str] = frozenset(_BOTH | {"prompt"})
CHAT_FIELDS: frozenset[str] = frozenset(
    _BOTH
    | {
        "messages", "tools", "tool_choice", "chat_template_kwargs", "enable_thinking", "reasoning_effort",
        "max_completion_tokens",
    }
)  # fmt: skip


class ApiError(Exception):
    """An answer in the engine's error envelope."""

    def __init__(
        self,
        status: int,
        message: str,
        kind: str = "invalid_request_error",
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": code}}


@dataclass(frozen=True)
class Asked:
    """One checked request: prompts as (tokens, text for retrieval)."""

    chat: bool
    prompts: list[tuple[array[int], str]]
    max_tokens: int
    n: int
    stop: list[str]
    stream: bool
    include_usage: bool
    ignore_eos: bool
    thinking: bool


def _fail(field: str, message: str) -> ApiError:
    return ApiError(400, f"{field}: {message}", param=field)


def _whole(body: dict[str, Any], field: str, low: int) -> int | None:
    value = body.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise _fail(field, f"must be a whole number of at least {low}")
    return value


def _flag(body: dict[str, Any], field: str, default: bool) -> bool:
    value = body.get(field)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise _fail(field, "must be true or false")
    return value


def read(body: Any, *, chat: bool, machine: Machine, tokenizer: Tokenizer, most_prompt: int | None = None) -> Asked:
    """Check a body and encode its prompts; ApiError carries the refusal. ``most_prompt`` cuts prompts in silence."""
    if not isinstance(body, dict):
        raise ApiError(400, "the body must be a JSON object")
    flags, context, release = machine.flags, machine.shape.context, machine.world.rules
    fields = (CHAT_FIELDS if chat else COMPLETION_FIELDS) | (_LLAMA if release.llama_fields else frozenset())
    for field in body:
        if field not in fields:
            raise ApiError(400, f"{field}: not supported by this server", code="unsupported_parameter", param=field)
    for field in _SAMPLER & body.keys():
        if body[field] is not None and (isinstance(body[field], bool) or not isinstance(body[field], (int, float))):
            raise _fail(field, "must be a number")
    if body.get("tool_choice") not in (None, "auto", "none") and not release.tool_choice:
        raise ApiError(400, "tool_choice: only auto and none", code="unsupported_parameter", param="tool_choice")
    thinking = chat and _thinking(body)
    prompts = [_chat_prompt(body, thinking, tokenizer)] if chat else _completion_prompts(body, tokenizer)
    prompts = [_cut(tokens, text, most_prompt, tokenizer) for tokens, text in prompts]
    longest = max(len(tokens) for tokens, _text in prompts)
    if longest >= context:
        field = "messages" if chat else "prompt"
        raise ApiError(
            400,
            f"{field}: {longest} prompt tokens does not fit the {context} token context, which leaves nothing to "
            f"generate into; shorten the prompt by at least {longest - context + 1} tokens",
            code="context_length_exceeded",
            param=field,
        )
    n = _whole(body, "n", 1) or 1
    if n > flags.max_n:
        raise _fail("n", f"at most {flags.max_n}")
    options = body.get("stream_options") or {}
    if not isinstance(options, dict):
        raise _fail("stream_options", "must be an object")
    return Asked(
        chat,
        prompts,
        _max_tokens(body, chat, flags, context - longest),
        n,
        _stop(body),
        _flag(body, "stream", False),
        _flag(options, "include_usage", False),
        _flag(body, "ignore_eos", False),
        thinking,
    )


def _max_tokens(body: dict[str, Any], chat: bool, flags: Flags, room: int) -> int:
    asked = _whole(body, "max_completion_tokens", 1) if chat else None
    asked = asked or _whole(body, "max_tokens", 1)
    if asked is None:
        default = flags.text("--default-max-tokens")
        asked = room if default == AUTO else int(default)
    cap = flags.number("--max-tokens-cap")
    return min(asked, room, cap) if cap else min(asked, room)


def _stop(body: dict[str, Any]) -> list[str]:
    stop = body.get("stop")
    words = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise _fail("stop", "must be a string or an array of strings")
    if len(words) > MOST_STOPS or any(len(word.encode("utf-8", "replace")) > MOST_STOP_BYTES for word in words):
        raise _fail("stop", f"at most {MOST_STOPS} strings of {MOST_STOP_BYTES} bytes")
    return words


def _thinking(body: dict[str, Any]) -> bool:
    kwargs = body.get("chat_template_kwargs") or {}
    if not isinstance(kwargs, dict):
        raise _fail("chat_template_kwargs", "must be an object")
    return _flag(kwargs, "enable_thinking", _flag(body, "enable_thinking", True))


def _completion_prompts(body: dict[str, Any], tokenizer: Tokenizer) -> list[tuple[array[int], str]]:
    prompt = body.get("prompt")
    if isinstance(prompt, str):
        return [(tokenizer.prompt(prompt), prompt)]
    if isinstance(prompt, list) and prompt:
        if all(isinstance(item, str) for item in prompt):
            return [(tokenizer.prompt(item), item) for item in prompt]
        lists = prompt if all(isinstance(item, list) and item for item in prompt) else [prompt]
        return [_ids(item, tokenizer) for item in lists]
    raise _fail("prompt", "must be a string, an array of strings, or an array of token ids")


def token_ids(field: str, ids: Any) -> array[int]:
    """A JSON array of token ids; ApiError for anything else."""
    if not isinstance(ids, list) or not all(isinstance(item, int) and 0 <= item < 2**31 for item in ids):
        raise _fail(field, "must be an array of token ids")
    return array("I", ids)


def _ids(ids: Any, tokenizer: Tokenizer) -> tuple[array[int], str]:
    tokens = token_ids("prompt", ids)
    return tokens, "".join(tokenizer.pieces(item for item in tokens if item != BOS))


def _cut(tokens: array[int], text: str, most: int | None, tokenizer: Tokenizer) -> tuple[array[int], str]:
    """A prompt's last tokens, and the text that is left of it."""
    if most is None or len(tokens) <= most:
        return tokens, text
    return tokens[-most:], "".join(tokenizer.pieces(tokens[-most:]))


def messages(value: Any) -> list[tuple[str, str]]:
    """(role, text) of chat messages, the text parts of each joined; ApiError for anything else."""
    if not isinstance(value, list) or not value:
        raise _fail("messages", "must be a non-empty array")
    found = []
    for message in value:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise _fail("messages", "each needs a role")
        content = message.get("content")
        if isinstance(content, list):
            content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
        if content is not None and not isinstance(content, str):
            raise _fail("messages", "content must be a string or an array of parts")
        found.append((str(message["role"]), content or ""))
    return found


def _chat_prompt(body: dict[str, Any], thinking: bool, tokenizer: Tokenizer) -> tuple[array[int], str]:
    listed = messages(body.get("messages"))
    asked = [text for role, text in listed if role in ("system", "user", "developer")]
    return tokenizer.chat(listed, thinking), "\n".join(asked)
