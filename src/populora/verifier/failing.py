"""How a program's own process says why there is no result; standard library alone, like the zygote."""

import builtins
from collections.abc import Callable
from types import CodeType

_NAME: Callable[[type], str] = type.__dict__["__name__"].__get__
_MRO: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_EXCEPTIONS = frozenset(
    kind for kind in vars(builtins).values() if isinstance(kind, type) and issubclass(kind, BaseException)
)


def compiled(program: str) -> CodeType | str:
    """Compile a program, or return the line that says why it cannot be."""
    try:
        return compile(program, "<program>", "exec", dont_inherit=True)
    except MemoryError:
        return "memory"
    except (SyntaxError, ValueError, RecursionError, OverflowError):
        return "syntax"


def complaint(error: BaseException) -> str:
    """Return the line that says what a program raised: the nearest built-in exception, and no code of its own."""
    kind = next(kind for kind in _MRO(type(error)) if kind in _EXCEPTIONS)
    return "memory" if kind is MemoryError else f"exception {_NAME(kind)}"
