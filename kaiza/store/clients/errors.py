"""Why a configuration is left exactly as it is."""


class ConfigError(Exception):
    """The file is not touched: what stands in the way, and on which line (from 1) where there is one."""

    def __init__(self, sentence: str, line: int | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.line = line
