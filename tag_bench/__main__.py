"""``python -m tag_bench``."""

from pathlib import Path

from tag_bench import LazyGroup

main = LazyGroup(
    "tag_bench", Path(__file__).parent, "Measure tagframe: accuracy against the papers, speed against peers."
)

if __name__ == "__main__":
    main(prog_name="python -m tag_bench")
