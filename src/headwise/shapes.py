"""Shapes in signatures: ``Float[Tensor, "*batch n m"]``.

The tests check every such signature with jaxtyping and beartype. Where jaxtyping is not
installed (it is no run-time dependency) the annotations fall back to the plain array type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
else:
    try:
        from jaxtyping import Bool, Float, Int
    except ImportError:

        class _Plain:
            def __class_getitem__(cls, item: tuple[Any, str]) -> Any:
                return item[0]

        Bool = Float = Int = _Plain

__all__ = ["Bool", "Float", "Int"]
