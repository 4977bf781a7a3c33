"""Time and memory of `context_resolve` over 10,000 documents of 4 KB, compared with reading and hashing them."""

import hashlib
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from kaiza.queries.context_caches import UntimedView
from kaiza.store.context.cache_builder import CacheBuilder
from kaiza.store.context.source_scan import SourceDocument
from kaiza.store.disk.kaiza_dir import KaizaDir
from kaiza.tools.context import context_resolve

DOCUMENTS, SIZE, ROUNDS = 10_000, 4096, 7
REQUEST = context_resolve.Request("bench", "word17 word400 word999", 20_000)
LIMIT_RATIO, LIMIT_MB = 8.0, 64.0


def build_cache(root_fd: int) -> None:
    rng = random.Random(1)
    words = [f"word{number}" for number in range(2000)]
    with closing(CacheBuilder(KaizaDir(root_fd))) as builder:
        for number in range(DOCUMENTS):
            text = f"{number} " + " ".join(rng.choices(words, k=600))
            builder.add(SourceDocument(f"{number}.md", f"{number}.md", text[:SIZE].encode()))
        builder.seal("2026-01-01T00:00:00Z")
        builder.publish("bench", replace=False)


def read_and_hash(directory: Path) -> None:
    for name in os.listdir(directory):  # noqa: PTH208  the fastest way is the baseline
        fd = os.open(directory / name, os.O_RDONLY)
        hashlib.sha256(os.read(fd, 1 << 16)).digest()
        os.close(fd)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(root: Path) -> dict[str, float]:
    # In a process of its own: the peak of memory is then that of the resolve.
    subprocess.run([sys.executable, __file__, "build", str(root)], check=True)
    root_fd = os.open(root, os.O_RDONLY)
    view = UntimedView(root_fd)
    documents = root / ".kaiza/context/bench/documents"
    read_and_hash(documents)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    context_resolve.run(REQUEST, view)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pairs = [
        (seconds(lambda: context_resolve.run(REQUEST, view)), seconds(lambda: read_and_hash(documents)))
        for _ in range(ROUNDS)
    ]
    resolve, bare = (statistics.median(column) for column in zip(*pairs, strict=True))
    return {"resolve_s": resolve, "bare_s": bare, "ratio": resolve / bare, "memory_mb": (peak - before) / 1024}


if sys.argv[1:2] == ["build"]:
    build_cache(os.open(sys.argv[2], os.O_RDONLY))
elif __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        figures = measure(Path(directory))
    print(json.dumps({**figures, "limit_ratio": LIMIT_RATIO, "limit_mb": LIMIT_MB}, indent=2))
    sys.exit(figures["ratio"] > LIMIT_RATIO or figures["memory_mb"] > LIMIT_MB)
