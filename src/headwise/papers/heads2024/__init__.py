"""The heads paper: Amsel, Yehudai, Bruna, On the Benefits of Rank in Attention Layers."""

from headwise.papers.exhibit import Exhibit
from headwise.papers.heads2024.figure_construction import FIGURE_CONSTRUCTION
from headwise.papers.heads2024.figure_in_context import FIGURE_IN_CONTEXT
from headwise.papers.heads2024.figure_large_n import FIGURE_LARGE_N
from headwise.papers.heads2024.figure_lower_bound import FIGURE_LOWER_BOUND
from headwise.papers.heads2024.figure_majority_vote import FIGURE_MAJORITY_VOTE
from headwise.papers.heads2024.figure_positions import FIGURE_POSITIONS
from headwise.papers.heads2024.figure_rank_depth import FIGURE_RANK_DEPTH
from headwise.papers.heads2024.figure_role_of_d import FIGURE_ROLE_OF_D
from headwise.papers.heads2024.figure_role_of_n import FIGURE_ROLE_OF_N
from headwise.papers.heads2024.figure_saturation import FIGURE_SATURATION
from headwise.papers.heads2024.figure_what_it_learns import FIGURE_WHAT_IT_LEARNS
from headwise.papers.heads2024.table_models import TABLE_MODELS

#: Every exhibit of this paper: its figures as it tells them, then what only computes.
HEADS_2024: tuple[Exhibit, ...] = (
    FIGURE_RANK_DEPTH,
    FIGURE_WHAT_IT_LEARNS,
    FIGURE_SATURATION,
    FIGURE_POSITIONS,
    FIGURE_ROLE_OF_N,
    FIGURE_ROLE_OF_D,
    FIGURE_LARGE_N,
    FIGURE_IN_CONTEXT,
    FIGURE_LOWER_BOUND,
    FIGURE_MAJORITY_VOTE,
    FIGURE_CONSTRUCTION,
    TABLE_MODELS,
)
