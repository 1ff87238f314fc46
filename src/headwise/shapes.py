"""Shapes in signatures: ``Float[Tensor, "*batch n m"]``.

The tests check these signatures with jaxtyping and beartype. jaxtyping is not needed at run
time: without it the annotations mean the plain array type, as they do to type checkers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Annotated as Bool
    from typing import Annotated as Float
    from typing import Annotated as Int
else:
    try:
        from jaxtyping import Bool, Float, Int
    except ImportError:

        class _Plain:
            def __class_getitem__(cls, item: tuple[Any, str]) -> Any:
                return item[0]

        Bool = Float = Int = _Plain

__all__ = ["Bool", "Float", "Int"]
