"""The search for the largest realised loss, over transcripts and over pairs of neighbouring tables.

A transcript is the record of a run. The realised loss is the difference of the log-densities of its outputs on the two
tables of a pair. To weigh a transcript on a pair is to compute this loss. Transcripts with drawn outputs are weighed on
random pairs, on all small pairs, and on pairs of very many equal rows. Then a game of two alternating moves is played
from several pairs. One move takes the outputs that lose most on the pair (see `worst_transcript_search`). The other
move climbs to a pair on which these outputs lose more. The search ends early once its largest loss is near the claim,
since little more can be found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import final

import numpy as np

from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.neighbour_pair_search import Search, WorstPair
from dpframework.verify.miners.replay_on_other_table import Weigher
from dpframework.verify.miners.transcript import Transcript
from dpframework.verify.miners.worst_transcript_search import worst_transcript
from dpframework.verify.queries.large_tables import pairs_of_many
from dpframework.verify.tables.neighbours import Pair, Sizes, changes

MOST_ROWS = 1000  # the most rows that two neighbours share, except for very many equal rows
EXHAUSTED = 3  # how many transcripts are weighed on all small tables
FEW = 16  # on how many random pairs the transcript of a steered run is weighed (see `runs_steered_to_rare_code`)
TIGHT = 0.97  # the share of the claim at which a search has come near enough
# How many games are played even if the search has come near the claim, since a mistake may show on other tables.
FEWEST_GAMES = 4
MOVES = 40  # how many pairs a climb tries before the outputs are chosen anew
TIRED = 2  # after how many climbs without success a game ends
MOST_ENDS = 12  # for how many games the last pair is kept


@final
class LossSearch:
    """The search for the pair and the transcript with the largest loss of one subject.

    Parameters
    ----------
    subject
        The miner on a schema under a relation, with its plan.
    claim
        The pure epsilon that the subject's plan claims.
    allowed
        The loss beyond which the claim is refuted.
    most
        The most equal rows that two neighbours may share.
    rng
        The random generator of the search.
    tell
        A function that shows progress. It is called before each game with a text that says how far the search is.

    Attributes
    ----------
    tried
        How many pairs of tables have been weighed. For each run with chosen outputs, the number of outputs that were
        tried per release is added.
    exhaustive
        All pairs of tables of a few kinds of rows were tried, up to this number of shared rows. -1 if even the smallest
        tables have too many pairs.
    ends
        The pairs of tables at which the first games ended, each with a transcript that loses much on it.
    """

    def __init__(
        self,
        subject: Subject,
        claim: Fraction,
        allowed: float,
        most: int,
        rng: np.random.Generator,
        tell: Callable[[str], None],
    ) -> None:
        self._subject, self._rng, self._most, self._allowed, self._tell = subject, rng, most, allowed, tell
        self._claim, self._enough = float(claim), TIGHT * float(claim)
        self._changes = changes(subject.universe, subject.relation, subject.by)
        sizes = Sizes.of(subject.schema, subject.relation, subject.most_rows(MOST_ROWS), subject.by.rows)
        self._search = Search(self._changes, subject.universe.kinds, sizes, rng, subject.patience)
        self._chosen = 0
        self.exhaustive = -1
        self.ends: list[tuple[Pair, Transcript]] = []

    @property
    def tried(self) -> int:
        """How many pairs have been weighed, plus the outputs per release that runs with chosen outputs have tried."""
        return self._search.tried + self._chosen

    def worst(
        self, transcripts: list[Transcript], steered: list[Transcript], pairs: int, reached: float
    ) -> tuple[WorstPair, Transcript]:
        """Return the pair with the largest loss found, and the transcript that shows it.

        Parameters
        ----------
        transcripts
            Transcripts with drawn outputs.
        steered
            Transcripts of steered runs, whose outputs were chosen to reach code behind branches. They come less near to
            a claim than drawn transcripts, and so are weighed on a few pairs only.
        pairs
            About how many pairs to try.
        reached
            The largest loss that is known already.
        """
        found, patience = self._weigh_draws(transcripts, steered, pairs), self._subject.patience
        games = 0
        while (not games or self.tried < pairs) and not patience.over:
            most = max(found[0].loss, reached)
            if games >= FEWEST_GAMES and most >= self._enough:
                break
            self._tell(f"{most / self._claim:.0%} of the claim reached on {self.tried:,} of {pairs:,} pairs of tables")
            start = found[0].pair if games % 2 else self._search.random_pair()
            ended = self._game(start, pairs)
            found = max(found, ended, key=lambda one: one[0].loss)
            games += 1
            if games <= MOST_ENDS:
                self.ends.append((ended[0].pair, ended[1]))
            if found[0].loss > self._allowed:
                break
        return found

    def _weigh_draws(
        self, transcripts: list[Transcript], steered: list[Transcript], pairs: int
    ) -> tuple[WorstPair, Transcript]:
        """Weigh transcripts, and climb from the worst pair.

        All transcripts are weighed on random pairs. Of those with drawn outputs, a few are also weighed on all small
        pairs, and the longest is also weighed on pairs of very many equal rows.
        """
        search, weighers = self._search, [Weigher(self._subject, transcript) for transcript in transcripts]
        each, every = max(pairs // (16 * len(weighers)), 2), pairs // (16 * EXHAUSTED)
        tried = [(search.at_random(weigher.loss, each), k) for k, weigher in enumerate(weighers)]
        tried += [(search.exhaustive(weigher.loss, every), k) for k, weigher in enumerate(weighers[:EXHAUSTED])]
        longest = max(range(len(transcripts)), key=lambda k: len(transcripts[k].events))
        many = pairs_of_many(self._subject.universe, self._changes, self._most)
        tried.append((search.worst(weighers[longest].loss, many), longest))
        self.exhaustive = search.sizes_covered(every)
        for transcript in steered:
            weighers.append(Weigher(self._subject, transcript))
            tried.append((search.at_random(weighers[-1].loss, FEW), len(weighers) - 1))
        found, k = max(tried, key=lambda one: one[0].loss)
        if found.loss > 0:
            found = search.climb(weighers[k].loss, found.pair, MOVES, enough=self._enough)
        return found, [*transcripts, *steered][k]

    def _game(self, pair: Pair, pairs: int) -> tuple[WorstPair, Transcript]:
        """Choose the worst outputs for the tables and the worst tables for these outputs, while the loss grows."""
        best, tired = self._choose_outputs_for(pair), 0
        patience = self._subject.patience
        while not patience.over and tired < TIRED and self.tried < pairs and best[0].loss < self._enough:
            found, transcript = best
            weigher = Weigher(self._subject, transcript)
            climbed = self._search.climb(weigher.loss, found.pair, MOVES, enough=self._enough)
            again = self._choose_outputs_for(climbed.pair)
            reached = max(best, (climbed, transcript), again, key=lambda one: one[0].loss)
            tired = 0 if reached[0].loss > found.loss * (1 + 1e-6) else tired + 1
            best = reached
        return best

    def _choose_outputs_for(self, pair: Pair) -> tuple[WorstPair, Transcript]:
        """Return a pair with its loss, and the transcript with the worst outputs found for it.

        Outputs are chosen in a run on each of the two tables. The transcript with the larger loss is returned.
        """
        chosen = []
        for one, other in (pair.tables, pair.tables[::-1]):
            transcript, tried = worst_transcript(self._subject, one, other, self._rng)
            self._chosen += tried // max(len(transcript.releases), 1)
            loss = Weigher(self._subject, transcript).loss(*pair.tables) if transcript.events else 0.0
            chosen.append((WorstPair(pair, loss if not math.isnan(loss) else 0.0), transcript))
        return max(chosen, key=lambda one: one[0].loss)
