"""The LM layer: everything that talks to a language model goes through :meth:`LM.complete`."""

from tagframe.lm.model import LM, get_lm
from tagframe.lm.pacing import RetryPolicy
from tagframe.lm.prompt import (
    Accept,
    Arrived,
    Batch,
    Bound,
    Completion,
    Completions,
    Form,
    Label,
    Message,
    Parameters,
    Prompt,
    Stored,
    TokenLogprob,
    about,
    as_json,
    fields_schema,
    words,
)
from tagframe.lm.quote import Quote, QuoteEnds, QuotingLM
from tagframe.lm.replay import Import, export_requests, import_answers, recorded_by
from tagframe.lm.store import default_path, open_store
from tagframe.lm.stream import Stream
from tagframe.lm.usage import Budget, Cost, Price, Usage, total_usage, usage

__all__ = [
    "LM",
    "Accept",
    "Arrived",
    "Batch",
    "Bound",
    "Budget",
    "Completion",
    "Completions",
    "Cost",
    "Form",
    "Import",
    "Label",
    "Message",
    "Parameters",
    "Price",
    "Prompt",
    "Quote",
    "QuoteEnds",
    "QuotingLM",
    "RetryPolicy",
    "Stored",
    "Stream",
    "TokenLogprob",
    "Usage",
    "about",
    "as_json",
    "default_path",
    "export_requests",
    "fields_schema",
    "get_lm",
    "import_answers",
    "open_store",
    "recorded_by",
    "total_usage",
    "usage",
    "words",
]
