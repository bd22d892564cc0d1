"""Texts that have broken queues before: each must come back exactly as it was sent."""

TEXTS = {
    "spaces at both ends": "  two before, two after  ",
    "only whitespace": " \t\n",
    "line ends of every kind": "unix\nmac\rdos\r\nboth\n\rend\r",
    "tabs": "\tone\t\ttwo\t",
    "XML specials": "<a href=\"x\">'&amp;'</a> ]]> <![CDATA[&]]> &#13; &lt;",
    "JSON specials": "{\"a\":\"\\\\ \\\" \\u0041 \\n /\"}",
    "form specials": "a=b&c=d+e%20f;g%",
    "Latin and Cyrillic": "naïve Straße Ёлка",
    "combining": "e\u0301 n\u0303 \u1e9b\u0323",
    "right to left": "שלום \u202e مرحبا",
    "separators": "a\u2028b\u2029c\u0085d\u00a0e\ufeff",
    "astral plane": "😀 \U0001f468\u200d\U0001f469\u200d\U0001f467 \U00010000 \U0010ffff",
    "edges of what SQS allows": "\u007f\u0080\ud7ff\ue000\ufffd",
}

# One character from each range that SQS refuses.
FORBIDDEN = {"NUL": "a\u0000b", "bell": "a\u0007b", "escape": "\u001b[0m",
             "non-character": "a\ufffeb", "last of the plane": "a\uffffb"}
