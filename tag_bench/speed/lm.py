"""``tag_bench speed lm``: the cases of ``speed operators`` in which rows a second count."""

from tag_bench.speed.operators import command_of

NAMES = ("filter_10k_50ms", "filter_1k_500ms", "filter_duplicates", "filter_from_store", "long_prompts")
command = command_of("lm", NAMES, 3, "Rows a second, computing time and memory of df.tag.sem_filter")
