"""``tag_bench speed``: how fast, beside a peer and beside the bare minimum."""

from pathlib import Path

from tag_bench import LazyGroup

command = LazyGroup("tag_bench.speed", Path(__file__).parent, "How fast, beside a peer and beside the bare minimum.")
