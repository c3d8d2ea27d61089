# The one list of tagframe's public names: type checkers read it, and lazy_loader loads what it names at first use.

from . import accessor as accessor
from . import errors as errors
from .accessor import tag as tag
from .answer import TAG as TAG
from .answer import Answer as Answer
from .answer import SQLLimits as SQLLimits
from .answer import aask as aask
from .answer import ask as ask
from .answer import ask_many as ask_many
from .answer import exec_sql as exec_sql
from .config import configure as configure
from .config import context as context
from .corpus import Corpus as Corpus
from .corpus import open_corpus as open_corpus
from .engines.files.batches import read_batches as read_batches
from .evaluation import check_lm as check_lm
from .lm import LM as LM
from .lm import Budget as Budget
from .lm import Price as Price
from .lm import Prompt as Prompt
from .lm import RetryPolicy as RetryPolicy
from .lm import usage as usage
from .merging import infer_keys as infer_keys
from .merging import join_plan as join_plan
from .merging import merge as merge
from .merging import stack as stack
from .operators import Cascade as Cascade
from .operators import known as known
from .operators import plan_sem_join as plan_sem_join
from .retrieval import methods as methods
from .retrieval import retrieve_tables as retrieve_tables

# operators: written by tools/write_stubs.py
from .operators.functions import asem_agg as asem_agg
from .operators.functions import asem_dedup as asem_dedup
from .operators.functions import asem_extract as asem_extract
from .operators.functions import asem_filter as asem_filter
from .operators.functions import asem_join as asem_join
from .operators.functions import asem_map as asem_map
from .operators.functions import asem_score as asem_score
from .operators.functions import asem_search as asem_search
from .operators.functions import asem_sim_join as asem_sim_join
from .operators.functions import asem_topk as asem_topk
from .operators.functions import sem_agg as sem_agg
from .operators.functions import sem_dedup as sem_dedup
from .operators.functions import sem_extract as sem_extract
from .operators.functions import sem_filter as sem_filter
from .operators.functions import sem_join as sem_join
from .operators.functions import sem_map as sem_map
from .operators.functions import sem_score as sem_score
from .operators.functions import sem_search as sem_search
from .operators.functions import sem_sim_join as sem_sim_join
from .operators.functions import sem_topk as sem_topk
# end of operators

__version__: str
