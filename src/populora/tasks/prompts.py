"""Prompts: template files, and their way through the tokenizer."""

from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from populora.errors import ConfigError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SETS = ("base", "chat", "compact")
"""Template sets that ship with the package."""
FILES = tuple(
    f"{part}_{task}.j2" for part in ("propose", "solve") for task in ("deduction", "abduction", "induction")
)
"""Templates every set has."""
_PLACEHOLDER = "9d1f5c2e7b"
"""Stands for the user message while the chat template around it is read."""


class Frame:
    """The way of a message through a tokenizer: as a user's turn of a chat, or as plain text to go on with.

    Args:
        tokenizer: The base model's.
        chat: Whether messages go through the tokenizer's chat template; else they are prompts as they stand.

    Raises:
        ConfigError: ``chat`` is set and the tokenizer has no usable chat template.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", chat: bool) -> None:
        self._tokenizer = tokenizer
        self._before, self._after = _chat_frame(tokenizer) if chat else _plain_frame(tokenizer)

    def encode(self, message: str, prefill: str = "") -> list[int]:
        """Return the prompt's token ids; the model's response comes next.

        Text of a model inside the message cannot end the turn or open another: special tokens are spelt out in
        ordinary tokens. Lone surrogates, which no tokenizer takes, become question marks.

        Args:
            message: The message.
            prefill: Beginning of the response.
        """
        spelt_out, prefilled = (
            _spelt_out(self._tokenizer, _encodable(text)) if text else [] for text in (message, prefill)
        )
        return [*self._before, *spelt_out, *self._after, *prefilled]


class Prompts:
    """A set of templates, bound to a tokenizer.

    Args:
        templates: Source of each template by file name.
        tokenizer: The base model's.
        chat: Whether messages go through the tokenizer's chat template; else they are prompts as they stand.

    Attributes:
        chat: As given.

    Raises:
        ConfigError: ``chat`` is set and the tokenizer has no usable chat template.
    """

    def __init__(
        self, templates: Mapping[str, str], tokenizer: "PreTrainedTokenizerBase", chat: bool
    ) -> None:
        self._environment = jinja2.Environment(
            loader=jinja2.DictLoader(templates),
            undefined=jinja2.StrictUndefined,
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.chat = chat
        self._frame = Frame(tokenizer, chat)

    @classmethod
    def load(cls, name_or_folder: str, tokenizer: "PreTrainedTokenizerBase") -> "Prompts":
        """Load a set that ships with the package, or a folder of the user's own.

        ``base`` is for models without chat training and writes prompts as plain text; ``chat`` and ``compact`` go
        through the tokenizer's chat template; a folder does where there is one.

        Raises:
            ConfigError: no such set or folder, a file is missing, or the tokenizer has no chat template.
        """
        shipped = name_or_folder in SETS
        folder: Traversable = (
            resources.files("populora.tasks") / "templates" / name_or_folder
            if shipped
            else Path(name_or_folder)
        )
        templates = _read(folder, name_or_folder)
        chat = name_or_folder != "base" if shipped else bool(tokenizer.chat_template)
        return cls(templates, tokenizer, chat)

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts that end a response, itself included: a model without chat training does not stop by itself."""
        return () if self.chat else ("</answer>",)

    def render(self, template: str, **variables: object) -> str:
        """Fill a template, named without its ``.j2``; inserted text is never read as template code.

        Raises:
            ConfigError: the template does not exist or uses a variable it is not given.
        """
        try:
            return self._environment.get_template(f"{template}.j2").render(variables)
        except jinja2.TemplateNotFound as error:
            raise ConfigError(f"model.base.prompts: there is no template {template}.j2; add it") from error
        except jinja2.TemplateError as error:
            known = ", ".join(sorted(variables))
            raise ConfigError(
                f"model.base.prompts: template {template}.j2: {error}; its variables are {known}"
            ) from error

    def encode(self, message: str) -> list[int]:
        """Return the prompt's token ids; see :meth:`Frame.encode`."""
        return self._frame.encode(message)


def _read(folder: Traversable, name: str) -> dict[str, str]:
    """Read all templates of a folder, by file name."""
    expected = f"expected one of {', '.join(SETS)}, or a folder with {', '.join(FILES)}"
    if not folder.is_dir():
        raise ConfigError(f"model.base.prompts: there is no template set or folder {name!r}; {expected}")
    templates = {
        file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".j2")
    }
    missing = [file for file in FILES if file not in templates]
    if missing:
        raise ConfigError(f"model.base.prompts: {name!r} lacks {', '.join(missing)}; {expected}")
    return templates


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _plain_frame(tokenizer: "PreTrainedTokenizerBase") -> tuple[list[int], list[int]]:
    """Token ids around a plain prompt: the tokenizer's beginning-of-sequence token, if it uses one."""
    return tokenizer.encode(""), []


def _chat_frame(tokenizer: "PreTrainedTokenizerBase") -> tuple[list[int], list[int]]:
    """Token ids the chat template puts before and after a user message."""
    if not tokenizer.chat_template:
        raise ConfigError(
            "model.base.prompts: this template set speaks through a chat template, but the base's tokenizer has none; "
            "set model.base.prompts to base, or save the tokenizer with its chat_template"
        )
    conversation = [{"role": "user", "content": _PLACEHOLDER}]
    text = tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=True)
    before, found, after = str(text).partition(_PLACEHOLDER)
    if not found:
        raise ConfigError(
            "model.base.prompts: the tokenizer's chat template leaves out the user message; set model.base.prompts to "
            "base, or mend the template"
        )
    return (
        tokenizer.encode(before, add_special_tokens=False),
        tokenizer.encode(after, add_special_tokens=False),
    )


def _spelt_out(tokenizer: "PreTrainedTokenizerBase", text: str) -> list[int]:
    """Token ids of text in which nothing counts as a special token."""
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
    return ids
