# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of /metrics. There is no row of VRAM, as in the engine."""

from __future__ import annotations

from typing import Any

from .counters import Counters


def text(model: str, stats: dict[str, Any], counters: Counters) -> str:
    """All rows, from what /stats says and from what was counted."""
    labels = f'model_name="{model}",engine="0"'
    totals = counters.totals
    gauges = {
        "vllm:num_requests_running": stats["running"],
        "vllm:num_requests_waiting": stats["waiting"],
        "vllm:gpu_cache_usage_perc": stats["kv_util"],
        "vllm:kv_cache_usage_perc": stats["kv_util"],
        "vllm:gpu_prefix_cache_hit_rate": stats["prefix_hit_rate"],
        "radiance:prefill_tokens_per_second": stats["prefill_tps"],
        "radiance:decode_tokens_per_second": stats["decode_tps"],
        "radiance:http_queue_depth": stats["waiting"],
    }
    counts = {
        "vllm:prompt_tokens_total": totals["prompt_tokens"],
        "vllm:generation_tokens_total": totals["generated"],
        "vllm:num_preemptions_total": totals["preemptions"],
        "radiance:engine_steps_prefill_total": totals["prefill_steps"],
        "radiance:engine_steps_decode_total": totals["decode_steps"],
        "radiance:decode_tokens_total": totals["generated"],
        "radiance:draft_tokens_total": totals["drafted"],
        "radiance:draft_accepted_total": totals["accepted"],
        "radiance:linear_checkpoints_written_total": totals["checkpoints"],
        "radiance:prefix_cache_evictions_total": stats["prefix_evictions"],
        "radiance:http_admission_rejected_total": totals["refused"],
    }
    rows = []
    for name, value in gauges.items():
        rows += [f"# TYPE {name} gauge", f"{name}{{{labels}}} {value}"]
    for name, value in counts.items():
        rows += [f"# TYPE {name} counter", f"{name}{{{labels}}} {int(value)}"]
    rows.append("# TYPE vllm:request_success_total counter")
    for reason, count in counters.reasons.items():
        rows.append(f'vllm:request_success_total{{{labels},finished_reason="{reason}"}} {count}')
    rows.append("# TYPE radiance:http_responses_total counter")
    for kind, count in counters.responses.items():
        rows.append(f'radiance:http_responses_total{{{labels},class="{kind}"}} {count}')
    for name, histogram in (
        ("vllm:time_to_first_token_seconds", counters.first_token),
        ("vllm:e2e_request_latency_seconds", counters.whole_request),
    ):
        rows += [f"# TYPE {name} histogram", *histogram.rows(name, labels)]
    return "\n".join(rows) + "\n"
