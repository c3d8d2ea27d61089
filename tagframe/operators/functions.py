"""The operators as functions, ``sem_filter``, ``asem_filter`` and so on; their types are in ``functions.pyi``."""

from tagframe.operators.public_forms import named as __getattr__

__all__ = ["__getattr__"]
