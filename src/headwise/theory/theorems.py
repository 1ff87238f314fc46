"""Every statement: where it is published, its simulation and its violator."""

from __future__ import annotations

from headwise.theory.statements.heads_bounds import LOWER_BOUNDS, UPPER_BOUND
from headwise.theory.statements.heads_expansion import EXPANSION
from headwise.theory.statements.heads_votes import VOTES
from headwise.theory.statements.ours import OURS
from headwise.theory.statements.rank_matrices import RANK_MATRICES
from headwise.theory.statements.rank_remarks import RANK_REMARKS
from headwise.theory.statements.rank_theorems import RANK_THEOREMS
from headwise.theory.statements.statement import Check, Evidence, Source, Statement

__all__ = ["STATEMENTS", "Check", "Evidence", "Source", "Statement"]

STATEMENTS: tuple[Statement, ...] = (
    *RANK_THEOREMS,
    *RANK_REMARKS,
    *RANK_MATRICES,
    *UPPER_BOUND,
    *EXPANSION,
    *LOWER_BOUNDS,
    *VOTES,
    *OURS,
)
