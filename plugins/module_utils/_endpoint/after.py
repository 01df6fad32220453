# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a short prompt is still answered right when the long ones are through.

A server that is out of memory may answer every short prompt right until its first long one, and nothing after it.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import corpus
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.asking import ask, fields
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.bodies import json_body
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.cost import AFTER_CHARS, AFTER_GENERATED
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.facts import Facts
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.judging import Finding, Plan, judge_reply
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import Settings


def check_after(settings: Settings, facts: Facts, earlier: t.Collection[str]) -> tuple[dict[str, t.Any], list[Finding]]:
    """Ask one short prompt: what it gave, ``{marker, markers, cause, says}``, and what that stands against.

    ``earlier`` are the markers of the long prompts, none of which may come back.
    """
    (words,) = corpus.code_words(1)
    prompt = corpus.recall_prompt(words, AFTER_CHARS, corpus.fresh_seed())
    body = json_body(fields(facts.model, AFTER_GENERATED, stream=True, stream_options={"include_usage": True}), prompt)
    said = ask(settings.client, body, settings.timeout)
    # Nothing is known of its tokens, which do not matter: it is short.
    look = judge_reply(said, words, earlier, Plan(1, facts.max_model_len or 1, AFTER_GENERATED, 0, AFTER_CHARS))
    cause = {"marker_lost": "wrong_after", "unsized": None}.get(look.cause or "", look.cause)
    after = {"marker": look.marker, "markers": list(look.markers), "cause": cause, "says": look.says}
    found = [Finding(cause, f"a short prompt after the long ones: {look.says}")] if cause else []
    return after, found
