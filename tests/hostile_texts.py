"""Names and contents that an agent or a clone could choose to harm whoever looks at them."""

SCRIPT = "</script><script>alert(1)</script>"
TEXTS = {
    "script end": SCRIPT,
    "comment end": "--><svg onload=alert(1)>",
    "tag": '<img src=x onerror="alert(1)">',
    "attribute end": "\"' onmouseover='alert(1)",
    "entity": "&lt;b&gt; &amp;amp; &#x3c;",
    "style end": "</style><style>*{display:none}</style>",
    "json end": '"}]</script>',
    "template": "{{7*7}} ${7*7} {0} %s",
    "markdown link": "[click](javascript:alert(1)) ![x](http://evil.test/x.png)",
    "markdown mention": "@everyone #1 GH-1 http://evil.test www.evil.test a@evil.test",
    "markdown fence": "``` \n````\n# heading\n<b>x</b>",
    "backticks": "`a``b```c",
    "table": "a | b \\| c",
    "ansi": "\x1b[2J\x1b[31mred\x1b]0;title\x07\x1b]8;;http://evil.test\x1b\\link\x1b]8;;\x1b\\",
    "c1": "\x9b31m\x9d0;t\x9c",
    "bidi": "invoice\u202efdp.exe\u202c \u2066x\u2069 \u200f",
    "zero width": "pay\u200bload\u200d\u2060\ufeff",
    "invisible": "\u3164\u115f\u034f\ufe0f\U000e0041",
    "line separators": "one\u2028two\u2029three\x85four\x0bfive\x0csix",
    "carriage return": "good\rbad",
    "newline": "first\nsecond",
    "nul free controls": "".join(map(chr, range(1, 32))) + "\x7f",
    "lookalike": "\u0430dmin.\u0440y",
    "combining": "Z\u0351\u036b\u0343a\u0300",
    "right to left": "\u05d0\u05d1\u05d2.txt",
    "wide": "文件名.py",
    "long": "x" * 100_000,
    "sarif link": "[text](1) {0} \\[x\\]",
    "protocol": "file:///etc/passwd",
    "home": "~/../../etc/passwd",
}
"""By what they try. Each may stand in a name as far as file systems allow it, and in contents."""
INVALID_UTF8 = b"caf\xe9 \xff\xfe \xed\xa0\x80 \xc0\xaf \xf4\x90\x80\x80\n"

_MAX_NAME_BYTES = 200


def file_names():
    """Names of files that a file system accepts, one for each text that can be one."""
    for text in TEXTS.values():
        name = text.replace("/", "\u2215")
        if "\0" not in name and len(name.encode()) <= _MAX_NAME_BYTES:
            yield name


def invisible_characters(text):
    """Characters that must never reach a reader as they are, besides line feeds."""
    return [char for char in text if char != "\n" and (not char.isprintable() or char in "\u3164\u115f\u034f\ufe0f")]
