"""What is unusual about tokens, in words: too few, repeats, outliers, small numbers."""

from __future__ import annotations

from headwise.advice.evidence import POSITION_SPREAD, TokenStatistics

#: An effective dimension above this share of the number of different tokens is read too low: of
#: isotropic tokens by a seventh.
TOO_FEW = 0.25

#: Of fewer tokens than this in all, whatever they are, nothing is known of others.
ENOUGH_TOKENS = 500

#: One token that makes up more than this share of all is worth a word.
MOSTLY_ONE = 1 / 3

#: Sequences repeat themselves where more than this share of the tokens occurred before, and they
#: have less than that share of the different tokens which as many drawn at random would have.
#: Prose and code have at least 0.64 of them, by words, characters and subwords.
MANY_RETURNING, FEW_DIFFERENT = 0.5, 0.5

#: Tokens less spread than this many times the positions are not seen for what they are. There the
#: digits saturate at rank 3, at their own scale at 4.
ABOVE_POSITIONS = 5.0


def unusual(found: TokenStatistics) -> list[str]:
    """Every such finding."""
    return [*_sample(found), *_outliers(found), *_returning(found), *_small(found)]


def _sample(found: TokenStatistics) -> list[str]:
    """Said where the tokens given are too few, or mostly one, to speak for others."""
    few = [*_few_in_all(found), *_few_for_their_dimension(found)]
    lines = [f"Few tokens: {' '.join(few)}"] if few else []
    if found.repeated > MOSTLY_ONE:
        lines.append(
            f"Repeats: {found.repeated:.0%} of the tokens are one and the same. If that is "
            "padding, leave it out and ask again: it was measured like any other token."
        )
    return lines


def _few_in_all(found: TokenStatistics) -> list[str]:
    looked_at = found.sequences * found.length
    if looked_at >= ENOUGH_TOKENS:
        return []
    return [
        f"{looked_at:,} in all were looked at, too few to speak for others. Pass at least "
        f"{ENOUGH_TOKENS:,}, better some hundreds of sequences."
    ]


def _few_for_their_dimension(found: TokenStatistics) -> list[str]:
    """Of vectors alone: ids have no dimension of their own."""
    known = None if found.learned else found.distinct
    if known is None or found.effective_dimension <= known * TOO_FEW:
        return []
    given = "1 different one was given, which shows"
    if known != 1:
        given = f"{known:,} different ones were given, which show"
    return [
        f"{given} no more than {_counted(min(known - 1, found.numbers or found.width))}. Of more "
        "the effective dimension, and with it the rank that retrieval takes, may be larger."
    ]


def _counted(dimensions: int) -> str:
    return f"{dimensions} dimension{'s' * (dimensions != 1)}"


def _outliers(found: TokenStatistics) -> list[str]:
    """Said where very few tokens decide what the statistics are."""
    dimension, mean = found.dimension_with_outliers, found.mean_share_with_outliers
    if dimension is None or mean is None:
        return []
    one = found.outliers == 1
    hold, them = ("holds", "it") if one else ("hold", "them")
    before, after = f"{mean:.0%}", f"{found.mean_share:.0%}"
    moved = f", and the common mean would hold {before} of the mean square, not {after}"
    return [
        f"Outliers: {found.outliers:,} of the {found.looked_at:,} tokens looked at {hold} "
        f"{found.outlier_share:.0%} of their variance and {'is' if one else 'are'} left out of the "
        f"effective dimension: with {them} that would be {dimension:.1f}, not "
        f"{found.effective_dimension:.1f}{moved if before != after else ''}. A layer norm makes "
        "such a token one like any other."
    ]


def _returning(found: TokenStatistics) -> list[str]:
    """Said where sequences are made of few tokens that come again and again."""
    different, usual = 1 - found.returning, 1 - found.returning_by_chance
    if found.returning <= MANY_RETURNING or different >= FEW_DIFFERENT * usual:
        return []
    return [
        f"Repeats: {found.returning:.0%} of the tokens occurred before in their sequence; of as "
        f"many drawn at random from all sequences {found.returning_by_chance:.0%} would have. "
        "Equal tokens lower the rank of attention: if the sequences were filled up to their "
        "length, cut them and ask again."
    ]


def _small(found: TokenStatistics) -> list[str]:
    """Said where the positions that a model adds are not small beside the tokens."""
    if found.spread is None or found.spread >= ABOVE_POSITIONS * POSITION_SPREAD:
        return []
    return [
        f"Positions: the numbers of the tokens lie {found.spread:.1g} from their means (root mean "
        f"square), those of the positions that are added {POSITION_SPREAD}, so mixing was read "
        "from the positions too. Scale the tokens to about 1, unless your model takes them as "
        "small as they are."
    ]
