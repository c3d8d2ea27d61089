"""List the contents of the wheel and the source archive in a folder: ``python tools/list_dist.py dist``."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from collections import Counter
from pathlib import Path


def names(archive: Path) -> list[str]:
    """The files of a wheel, or of a source archive without its top folder."""
    if archive.suffix == ".whl":
        return zipfile.ZipFile(archive).namelist()
    with tarfile.open(archive) as packed:
        return [member.name.partition("/")[2] for member in packed.getmembers() if member.isfile()]


def main(folder: str) -> None:
    """Print a line for each archive, and one for each of its top folders and files."""
    for archive in sorted(Path(folder).iterdir()):
        found = names(archive)
        print(f"{archive.name}: {len(found)} files, {archive.stat().st_size / 2**20:.1f} MB")
        for top, count in sorted(Counter(name.split("/")[0] for name in found).items()):
            print(f"  {top}: {count} {'file' if count == 1 else 'files'}")


if __name__ == "__main__":
    main(sys.argv[1])
