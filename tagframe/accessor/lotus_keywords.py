"""LOTUS's keywords on ``df.tag``: each has the same name here or another one, or is refused with a replacement.

So a pipeline moves over by adding ``.tag``, and no keyword is silently ignored.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from tagframe.errors import InvalidArgument

RENAMED = {"user_instruction": "instruction", "join_instruction": "instruction", "other": "right"}
"""LOTUS's name → tagframe's name."""

INSTEAD = {
    "additional_cot_instructions": "say it in the instruction; return_explanations=True has the model explain first",
    "cascade_args": "give cascade=tf.Cascade(recall=…, precision=…) if the operator has it",
    "cascade_threshold": "no cheaper model decides comparisons here",
    "default": 'an answer that cannot be parsed is a failure; on_error="keep" keeps such rows as <NA>',
    "helper_examples": "a cascade's proxy learns from its own sample of rows",
    "long_context_strategy": "rows are packed by tokens, and .tag.outcomes shows which rows were cut",
    "method": "rows are ranked by lists, which take fewer requests than comparisons of two",
    "output_tokens": "the answers are True, False and Unsure",
    "postprocessor": "give dtype=, choices= or response_format= of sem_map",
    "progress_bar_desc": "give progress=True or progress=False",
    "return_raw_outputs": "give return_explanations=True; the response store keeps every answer",
    "return_explanations": "a ranking is made of many answers; see .tag.outcomes and its remarks",
    "return_stats": "read .tag.outcomes of the result, and tagframe.usage()",
    "safe_mode": "df.tag.quote returns the calls and the cost in advance, and budget= is a limit",
    "split_fields_into_cols": "the fields of a response_format are columns",
    "strategy": "give return_explanations=True, which has the model explain first",
    "system_prompt": "say it in the instruction",
}
"""LOTUS's keyword that tagframe does not have → its replacement."""


@functools.cache
def taking_lotus_keywords(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of ``df.tag`` that takes the keywords of LOTUS's method, or names their replacements."""
    own = inspect.signature(method).parameters

    @functools.wraps(method)
    def call(*arguments: Any, **keywords: Any) -> Any:
        return method(*arguments, **{k: v for name, given in keywords.items() for k, v in _ours(name, given).items()})

    def _ours(name: str, given: Any) -> dict[str, Any]:
        """The keyword under tagframe's name; none if it is switched off.

        Raises:
            InvalidArgument: tagframe does not have the keyword.
        """
        if name in own or (name not in RENAMED and name not in INSTEAD):
            return {name: given}
        if RENAMED.get(name) in own:
            return {RENAMED[name]: given}
        if given is None or (given is False and name != "default"):
            return {}
        instead = INSTEAD.get(name, f"give {RENAMED.get(name)}=")
        raise InvalidArgument(f"LOTUS's {name}= of {method.__name__} is not supported: {instead}; got {given!r:.80}")

    return call
