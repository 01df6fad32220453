# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The contract: what the pool must hold so that every sequence can reach the full context at once.

``needed = sequences x ceil(context / block) x bytes a block + sequences x state + checkpoints``, a rank and card, as
the engine counts it. A pool that holds ``filled`` (one checkpoint stride of alignment and 4 KiB a paged group more)
lets the boot say that it backs all sequences at once.

Live sessions are no part of the contract, which is what running requests need: with prefix caching finished sessions
keep blocks, and a pool that does not hold them makes the next turn prefill its whole context again.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import math
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.architecture import MIB
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import Shape
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Json, counted, rounded
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.wishes import LiveSessions

_ALIGN = 4096
# More than anybody asks for: a search that comes to it has found no bound.
NO_BOUND = 2**30
_CONTRACT = (
    "needed_mib",
    "pool_mib",
    "spare_mib",
    "tokens_mib",
    "state_mib",
    "checkpoint_mib",
    "rate_bytes_per_token",
    "state_mib_per_sequence",
    "figures_from",
    "backing",
    "full_mib",
    "live_sessions",
)


class PagedGroup(t.NamedTuple):
    """A group that grows with the context: ``page_bytes`` for each block of ``block_tokens``."""

    block_tokens: int
    page_bytes: float


class StateGroup(t.NamedTuple):
    """A group of fixed size: ``state_bytes`` for each of ``copies`` (a sequence)."""

    state_bytes: float
    copies: float


class Figures(t.NamedTuple):
    """The KV figures of one rank, where they are from, and the lines that say so."""

    paged: tuple[PagedGroup, ...]
    states: tuple[StateGroup, ...]
    checkpoint_slots: int
    checkpoint_bytes: float
    stride_bytes: float
    figures_from: str
    lines: tuple[str, ...]

    @property
    def known(self) -> bool:
        """Whether these are figures at all: see UNKNOWN_FIGURES."""
        return bool(self.paged or self.states or self.lines)

    @property
    def rate_bytes_per_token(self) -> float:
        """Bytes a token and rank."""
        return sum(group.page_bytes / group.block_tokens for group in self.paged)

    @property
    def state_bytes_per_sequence(self) -> float:
        """Bytes a sequence and rank, whatever its length."""
        return sum(group.state_bytes * group.copies for group in self.states)

    def tokens_mib(self, sequences: int, context: int) -> float:
        """``sequences`` contexts of ``context`` tokens, in whole blocks."""
        a_sequence = sum(math.ceil(context / group.block_tokens) * group.page_bytes for group in self.paged)
        return sequences * a_sequence / MIB

    def state_mib(self, sequences: int) -> float:
        """The state of ``sequences``, each group aligned to 4 KiB."""
        return sum(_aligned(group.state_bytes * group.copies * sequences) for group in self.states) / MIB

    @property
    def checkpoint_mib(self) -> float:
        """All checkpoint slots."""
        return self.checkpoint_bytes / MIB

    @property
    def alignment_mib(self) -> float:
        """What the engine's layout adds to the contract: one stride, and 4 KiB a paged group."""
        return (self.stride_bytes + _ALIGN * len(self.paged)) / MIB

    def needed_mib(self, shape: Shape, backing: str = "full") -> float:
        """The contract of a shape; with ``one_request``, tokens for a single full context."""
        sequences = shape.max_num_seqs if backing == "full" else 1
        return (
            self.tokens_mib(sequences, shape.max_model_len) + self.state_mib(shape.max_num_seqs) + self.checkpoint_mib
        )

    def live_mib(self, shape: Shape, live: LiveSessions | None) -> float:
        """What holds the blocks of ``live`` beside the states of the shape's sequences; 0 where nothing is asked."""
        if live is None:
            return 0.0
        tokens = self.tokens_mib(1, live.held_tokens(shape.max_model_len))
        return tokens + self.checkpoint_mib + self.state_mib(shape.max_num_seqs)

    def filled_mib(self, shape: Shape, backing: str = "full", live: LiveSessions | None = None) -> float:
        """The pool at which the engine's own count says that all of the contract is backed, and ``live`` held."""
        return max(self.needed_mib(shape, backing), self.live_mib(shape, live)) + self.alignment_mib

    def fixed_mib(self, shape: Shape) -> float:
        """What a pool spends before it holds a token: states, checkpoints, alignment."""
        return self.state_mib(shape.max_num_seqs) + self.checkpoint_mib + self.alignment_mib

    def backed_sequences(self, pool_mib: float, shape: Shape) -> float:
        """How many full contexts the pool backs at once, as the engine's backing figure counts them."""
        return max(0.0, (pool_mib - self.fixed_mib(shape)) / self.tokens_mib(1, shape.max_model_len))

    def as_dict(self, shape: Shape, pool_mib: float | None, backing: str, live: LiveSessions | None = None) -> Json:
        """The plan's ``contract``, MiB a rank; null where the figures are not known."""
        pool = None if pool_mib is None else rounded(pool_mib)
        if not self.known:
            return {**dict.fromkeys(_CONTRACT), "pool_mib": pool, "backing": backing}
        needed = self.needed_mib(shape, backing)
        sequences = shape.max_num_seqs if backing == "full" else 1
        return {
            "needed_mib": rounded(needed),
            "pool_mib": pool,
            "spare_mib": None if pool_mib is None else rounded(pool_mib - needed),
            "tokens_mib": rounded(self.tokens_mib(sequences, shape.max_model_len)),
            "state_mib": rounded(self.state_mib(shape.max_num_seqs)),
            "checkpoint_mib": rounded(self.checkpoint_mib),
            "rate_bytes_per_token": rounded(self.rate_bytes_per_token),
            "state_mib_per_sequence": rounded(self.state_bytes_per_sequence / MIB),
            "figures_from": self.figures_from,
            "backing": backing,
            "full_mib": rounded(self.needed_mib(shape)),
            "live_sessions": None if live is None else self._live_dict(shape, live),
        }

    def _live_dict(self, shape: Shape, live: LiveSessions) -> Json:
        return {
            "sessions": live.sessions,
            "tokens": live.context(shape.max_model_len),
            "factor": live.factor,
            "factor_from": live.factor_from,
            "held_tokens": live.held_tokens(shape.max_model_len),
            "needed_mib": rounded(self.live_mib(shape, live)),
        }


# For a pair and shape that ran before and whose figures no line of this boot tells: nothing may be computed with them.
UNKNOWN_FIGURES = Figures((), (), 0, 0.0, 0.0, "", ())


def largest_request(figures: Figures, pool_mib: float, shape: Shape) -> int:
    """The longest single request that the pool holds, by the engine's own count; 0 where none."""
    return _largest(lambda context: _holds_one(figures, pool_mib, shape._replace(max_model_len=context)))


def most_beside_one(figures: Figures, pool_mib: float, shape: Shape) -> int:
    """The most sequences whose states leave a single request of the shape's context its room; 0 where none do."""
    return _largest(lambda count: _holds_one(figures, pool_mib, shape._replace(max_num_seqs=count)))


def _holds_one(figures: Figures, pool_mib: float, shape: Shape) -> bool:
    return figures.filled_mib(shape, "one_request") <= pool_mib + 1e-6


def largest_context(
    figures: Figures, pool_mib: float, shape: Shape, live: LiveSessions | None = None, backing: str = "full"
) -> int:
    """The longest context that the pool backs for all of the shape's sequences at once; 0 where none."""
    return _largest(lambda context: _backs(figures, pool_mib, shape._replace(max_model_len=context), live, backing))


def most_sequences(
    figures: Figures, pool_mib: float, shape: Shape, live: LiveSessions | None = None, backing: str = "full"
) -> int:
    """The most sequences that the pool backs at the shape's full context at once; 0 where none."""
    return _largest(lambda count: _backs(figures, pool_mib, shape._replace(max_num_seqs=count), live, backing))


def fitting_shapes(
    figures: Figures,
    pool_mib: float,
    shape: Shape,
    live: LiveSessions | None = None,
    backing: str = "full",
    exact: int | None = None,
) -> str:
    """The longest context at these sequences, and the most sequences at this context; empty where there is neither.

    Each is a request that holds ``live`` as well, and is backed as asked; of no more sequences than ``exact``.
    """
    context = largest_context(figures, pool_mib, shape, live, backing)
    count = min(most_sequences(figures, pool_mib, shape, live, backing), exact or NO_BOUND)
    # What no pool bounds (a dense model's sequences, for a single request) is no shape to be told of.
    context, count = (0 if most >= NO_BOUND else most for most in (context, count))
    held = [f"{context:,} tokens for {counted(shape.max_num_seqs, 'sequence')}"] if context else []
    held += [f"{counted(count, 'sequence')} of {shape.max_model_len:,} tokens"] if count else []
    one = " (one of them backed at once)" if held and backing == "one_request" else ""
    return ", or ".join(held) + one


def live_words(live: LiveSessions, shape: Shape) -> str:
    """``2 live sessions of 184,000 tokens, which hold 662,400 tokens of blocks (...)``."""
    return (
        f"{counted(live.sessions, 'live session')} of {live.context(shape.max_model_len):,} tokens, which hold "
        f"{live.held_tokens(shape.max_model_len):,} tokens of blocks ({live.factor:g} x context, by {live.factor_from})"
    )


def most_live_sessions(figures: Figures, pool_mib: float, shape: Shape, live: LiveSessions) -> int:
    """The most live sessions whose blocks the pool holds; 0 where none."""
    return _largest(lambda count: figures.live_mib(shape, live._replace(sessions=count)) <= pool_mib + 1e-6)


def _backs(figures: Figures, pool_mib: float, shape: Shape, live: LiveSessions | None, backing: str) -> bool:
    """Whether a request for this shape would pass all gates of the pool: contract, live sessions, one request's own."""
    contract = figures.needed_mib(shape, backing)
    needed = max(contract, figures.live_mib(shape, live), figures.filled_mib(shape, "one_request"))
    return needed <= pool_mib + 1e-6


def _aligned(size: float) -> float:
    return math.ceil(size / _ALIGN - 1e-6) * _ALIGN


def _largest(fits: t.Callable[[int], bool]) -> int:
    if not fits(1):
        return 0
    high = 2
    while high < NO_BOUND and fits(high):
        high *= 2
    if high >= NO_BOUND:
        return NO_BOUND
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
