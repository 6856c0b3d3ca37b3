"""Turns the JSON inputs of MBPP+ back into what its solutions take: tuples, sets, complex numbers."""

from collections.abc import Callable, Sequence
from typing import Any

Arguments = list[Any]


def restored(number: int, arguments: Sequence[Any]) -> Arguments:
    """Return the arguments of one call with their types.

    Args:
        number: Of the task, e.g. 2 for ``Mbpp/2``.
        arguments: As the data set has them.
    """
    return _RESTORE.get(number, list)(arguments)


def _each_a_tuple(arguments: Sequence[Any]) -> Arguments:
    return [tuple(argument) for argument in arguments]


def _each_a_list_of_tuples(arguments: Sequence[Any]) -> Arguments:
    return [_each_a_tuple(argument) for argument in arguments]


def _each_a_tuple_of_tuples(arguments: Sequence[Any]) -> Arguments:
    return [tuple(_each_a_tuple(argument)) for argument in arguments]


def _first_a_list_of_tuples(arguments: Sequence[Any]) -> Arguments:
    return [_each_a_tuple(arguments[0]), *arguments[1:]]


def _first_a_tuple(arguments: Sequence[Any]) -> Arguments:
    return [tuple(arguments[0]), *arguments[1:]]


def _second_a_tuple(arguments: Sequence[Any]) -> Arguments:
    return [arguments[0], tuple(arguments[1]), *arguments[2:]]


def _a_list_of_sets(arguments: Sequence[Any]) -> Arguments:
    """Turn lists into sets, but the empty one into a dict, as the benchmark does."""
    return [[set(item) if isinstance(item, list) and item else {} for item in arguments[0]]]


def _a_tuple_with_tuples(arguments: Sequence[Any]) -> Arguments:
    return [tuple(tuple(item) if isinstance(item, list) else item for item in arguments[0])]


def _a_dict_of_tuples(arguments: Sequence[Any]) -> Arguments:
    return [{key: tuple(value) for key, value in arguments[0].items()}, *arguments[1:]]


def _nested_tuples(arguments: Sequence[Any]) -> Arguments:
    return [_tuples_throughout(argument) for argument in arguments]


def _tuples_throughout(value: Any) -> Any:
    return tuple(map(_tuples_throughout, value)) if isinstance(value, list) else value


_SHAPES: tuple[tuple[Callable[[Sequence[Any]], Arguments], tuple[int, ...]], ...] = (
    (
        _each_a_tuple,
        (2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726, 740, 744, 809),
    ),
    (
        _each_a_list_of_tuples,
        (63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780),
    ),
    (_each_a_tuple_of_tuples, (259, 401, 445)),
    (_first_a_list_of_tuples, (75, 413, 444, 753)),
    (_first_a_tuple, (250, 307, 405, 446, 617, 720, 763, 808)),
    (_second_a_tuple, (106, 750)),
    (_a_list_of_sets, (115,)),
    (_a_tuple_with_tuples, (278,)),
    (_a_dict_of_tuples, (722,)),
    (_nested_tuples, (580, 615, 791)),
    (lambda arguments: [float(arguments[0]), complex(arguments[1])], (124,)),
    (lambda arguments: [complex(arguments[0])], (252,)),
)  # fmt: skip
_RESTORE = {number: restore for restore, numbers in _SHAPES for number in numbers}
