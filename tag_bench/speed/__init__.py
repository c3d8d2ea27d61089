"""``tag_bench speed``: speed, compared with other libraries and with the bare minimum."""

from pathlib import Path

from tag_bench import LazyGroup

command = LazyGroup(
    "tag_bench.speed", Path(__file__).parent, "Speed, compared with other libraries and with the bare minimum."
)
