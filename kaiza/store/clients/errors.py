"""Error of a configuration file that cannot be changed safely."""


class ConfigError(Exception):
    """The file was left untouched: the reason without a final period, and the line (from 1) if one is at fault."""

    def __init__(self, sentence: str, line: int | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.line = line
