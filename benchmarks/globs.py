"""Time the slowest glob matches: patterns of 200 characters on paths of 4,000. The limit is 10 ms each."""

import time

from kaiza.domain.paths.glob import Glob

PATTERNS = {
    "stars": "*a" * 100,
    "deep": "**/" * 66 + "x",
    "mixed": ("**/a*b?[c-e]/" * 16)[:198] + "z",
    "classes": "[!b]*" * 40,
    "many deep": "**/*/" * 39 + "a/b",
}
PATHS = {"one name": "a" * 4000, "many names": "a/" * 1999 + "ab", "long names": ("a" * 200 + "/") * 19 + "b" * 100}


def main() -> None:
    for pattern_name, pattern in PATTERNS.items():
        glob = Glob.parse(pattern[:200].rstrip("/"))
        for path_name, path in PATHS.items():
            best = min(_match_seconds(glob, path) for _ in range(20))
            print(f"{pattern_name:10} on {path_name:10} {best * 1000:7.3f} ms")


def _match_seconds(glob: Glob, path: str) -> float:
    start = time.perf_counter()
    glob.matches_text(path)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
