r"""The ``word`` tokeniser: English-aware, sensible in any script.

Text is cut at white space, and each piece is cut again by one pattern, read from top to bottom
below. What a piece becomes depends on the piece alone, and a handful of pieces makes up most of
any text, so answers are kept in a table: soon nearly every piece is one look-up, which is what
makes this quick. One rule looks further: the full stop that ends a text is a token of its own,
even behind an abbreviation that likes to end sentences ("until 5 p.m.").

Conventions are those of modern English treebanks: ``do|n't``, ``it|'s``, ``can|not``, ``$|5``,
``10|%``, ``5|pm``, ``well|-|known`` but ``co-worker`` and ``e-mail``; telephone numbers, dates,
addresses of the web and of mail stay whole. CJK is cut by character, emoji by what the eye sees.
"""

from __future__ import annotations

import functools
from typing import Any, Literal

from nlpkit.text.patterns import PieceTokenizer, Span, find_spans

Hyphens = Literal["split", "keep"]

# Two words written together, and where the second one begins.
JOINED = {
    **{"cannot": 3, "gonna": 3, "wanna": 3, "gotta": 3, "gimme": 3, "lemme": 3, "dunno": 2},
    # contractions typed without their apostrophe, where no other word is spelled so
    **{f"{verb}nt": len(verb) for verb in "do did does could would should is was have has".split()},
    **{"cant": 2, "im": 1, "ive": 1, "youre": 3, "theyre": 4, "thats": 4, "whats": 4, "theres": 5},
}
# A prefix that is no word of its own keeps its hyphen.
PREFIXES = """
    anti arch audio auto bi bio co counter cyber de e eco electro ex extra geo hyper inter intra
    macro mega meta micro mid mini mis mono multi neo neuro non over pan para poly post pre pro
    proto pseudo psycho quasi re semi socio sub super t tele trans tri u ultra un under uni v x
""".split()
ABBREVIATIONS = """
    mr mrs ms dr drs prof rev hon gen col capt lt maj sgt cpl cmdr adm gov sen rep pres st messrs
    mme mlle supt insp atty jr sr esq bros inc ltd corp co assn dept univ est approx
    jan feb apr jun jul aug sept oct nov dec
    vs viz cf al ca fig figs eq eqs ed eds vol vols pp sec ext tel ave blvd rd hwy mt
    lb lbs oz ft tsp tbsp
    ala ariz ark calif colo conn fla ill kan mass md mich minn mont neb nev okla ore
    penn tenn tex va vt wis wyo
""".split()
DAYS = "mon tue tues wed thur thurs fri sat sun".split()
# These keep their full stop within a text and lose it at the end.
ENDERS = frozenset("a.m. p.m. etc. co. inc. ltd. corp. jr. sr. al. ft. lbs. lb. oz.".split())
UNITS = r"""
    [ap]m [AP]M [ap]\.m\. [AP]\.M\. k K M mm cm km m ft in lb lbs kg mg g oz ml mph kph mpg hp
    [kMG]?Hz [kKMGT][bB] mb gb [kM]?W V yrs? hrs? mins? secs? bn x
""".split()
DOMAINS = """
    com org net edu gov mil int info biz io ai app dev co uk us ca au de fr es it nl be ch at se no
    dk fi pl ru cz jp cn in br mx ar eu tv me cat ie nz za kr gr pt hu ro il
""".split()
FILES = """
    txt docx? xlsx? pptx? pdf html? asp php jpe?g png gif zip gz tar exe dll csv tsv xml json py
    js css mp3 mp4 avi rtf wav
""".split()

_W = r"[[\w\p{M}\u200c\u200d]--[\p{Han}\p{Hiragana}\p{Katakana}]]"  # a character of a word
_AT_START = r"(?<![\w\p{M}])"
_AT_END = r"(?![\w\p{M}])"
_Q = "['’]"
_CLITIC = rf"(?i:s|re|ve|ll|d|m){_AT_END}"
_WORD = rf"{_W}+(?:{_Q}(?!{_CLITIC}){_W}+)*"
_URL_TAIL = r"""[^\s<>"“”]*[^\s<>"“”.,;:!?'’)\]}*…]"""
_NUMBER = r"\p{N}+(?:[.,:]\p{N}+)*"


def _any(words: list[str]) -> str:
    return "(?:" + "|".join(words) + ")"


# The rules in groups, tried from top to bottom. A group begins with a look ahead at what its rules
# may begin with, which spares the trouble of trying each. Repeats are possessive (++) or bounded
# where they could fail late, so that an endless piece takes linear time.
GROUPS: list[tuple[str, list[str]]] = [
    (  # addresses of the web and of mail, files
        r"[\w.+%#@-]",
        [
            rf"(?i:(?:https?|ftps?|file|mailto|news):/?/?|www\.){_URL_TAIL}",
            r"[\w.+%-]{1,64}+@(?:[\w-]{1,63}+\.){0,9}[\w-]{1,63}",
            rf"(?:[\w-]{{1,63}}+\.){{1,9}}(?i:{_any(DOMAINS)}){_AT_END}(?!\.\w)(?:/(?:{_URL_TAIL})?)?",
            rf"(?:\w[\w#-]{{0,99}}+)?\.(?i:{_any(FILES)}){_AT_END}",
            r"@\p{L}\w*",
            r"#\p{L}\w*",
        ],
    ),
    (  # faces and pictures
        r"[<>:;=8xXoO^(¯-]|[^\x00-\x7f]|[0-9#*]",
        [
            r"(?<!\w)[<>]?(?:[:;=][-o*'’^]?|[8xX][-*^]?)(?:[()\[\]|@*/\\]+|[DPpOo3](?!\w))(?![\w/])",
            r"[:;=][-^]?[()]+(?!\w)|\([-^]?[:;=](?![\w)])",
            r"<3+(?!\d)|</3|\^[_.-]*\^|-_+-|[oO]_+[oO](?!\w)|¯\\_\(ツ\)_/¯",
            r"\p{RI}\p{RI}|[0-9#*]\ufe0f?\u20e3",
            r"\p{Extended_Pictographic}[\ufe0f\p{EMod}]*"
            r"(?:\u200d\p{Extended_Pictographic}[\ufe0f\p{EMod}]*)*[\U000e0020-\U000e007f]*",
        ],
    ),
    (  # telephones, dates, numbers with their units
        r"[\p{N}+(.'’-]",
        [
            r"(?<![\w-])(?:\+?\d{1,3}[-.])?(?:\(\d{3}\)|\d{3})[-./]\d{3}[-.]\d{4}(?![\w-])",
            r"(?<![\w-])\d{3}-\d{4}(?![\w-])",
            r"(?<![\w/-])\d{1,4}(?P<s>[/-])\d{1,2}(?P=s)\d{1,4}(?![\w/-])",
            r"(?<![\w/])(?!1/[234]\b|[23]/[34]\b)\d{1,2}/\d{1,2}(?![\w/])",
            rf"{_AT_START}\d++(?:[.,:]\d++)*+(?={_any(UNITS)}{_AT_END})",
            rf"{_AT_START}\d+{_Q}s{_AT_END}|{_Q}\d\ds?{_AT_END}",
            rf"(?<![\w)\p{{M}}])[+-]{_NUMBER}{_AT_END}(?!-)",
            rf"{_NUMBER}{_AT_END}|(?<!\w)\.\d+{_AT_END}",
        ],
    ),
    (r"(?<=\d)\p{L}", [rf"{_any(UNITS)}{_AT_END}"]),
    (  # abbreviations
        r"(?<![\w\p{M}])\p{L}++\.",
        [
            rf"(?:\p{{L}}\.){{2,}}(?!\w)|\p{{L}}(?:\.\p{{L}})+{_AT_END}",
            rf"(?<!{_Q})\p{{Lu}}\.(?![.\w])(?!(?<=I\.)$)|Ph\.D\.?",
            rf"(?i:{_any(ABBREVIATIONS)})\.(?![.\w])|(?i:etc)\.(?!\.)|[Nn]os?\.(?=\d)",
            rf"{_any([day.title() for day in DAYS])}\.(?!\.)",
        ],
    ),
    (  # parts of contractions
        rf"{_Q}|[nN]{_Q}",
        [
            rf"(?i:n{_Q}t){_AT_END}|{_Q}{_CLITIC}",
            rf"{_AT_START}{_Q}(?i:em|tis|twas|cause|til|till|n){_AT_END}",
        ],
    ),
    (  # words
        r"[\w\p{M}]",
        [
            rf"(?={_W}++{_Q}){_W}+(?=(?i:n{_Q}t){_AT_END})",
            rf"{_AT_START}\p{{Lu}}++(?:&\p{{Lu}}+)+{_AT_END}|{_AT_START}w/o?{_AT_END}",
            "HYPHENATED",
            _WORD,
            r"[\p{Han}\p{Hiragana}\p{Katakana}]\p{M}*",
        ],
    ),
    (  # punctuation: what is drawn from one character is one token
        "",
        [
            r"[.!?…]{2,}|-{2,}|[—–]+|''|``|<<|>>|[-=]{1,9}>|<[-=]+",
            r"(?P<p>[^\w\s()\[\]{}\"“”‘’'$€£])(?P=p)+",
            r".\p{M}*",
        ],
    ),
]
_HYPHENATED = {
    "split": rf"{_AT_START}(?i:{_any(PREFIXES)})-(?=\w){_WORD}",
    "keep": rf"{_W}+(?:{_Q}{_W}+)*(?:[-‐‑](?={_W}){_W}+(?:{_Q}(?!{_CLITIC}){_W}+)*)+",
}


@functools.cache
def _pattern(hyphens: Hyphens) -> Any:
    import regex

    rules = "|".join(f"(?={guard})(?:{'|'.join(group)})" for guard, group in GROUPS)
    return regex.compile(rules.replace("HYPHENATED", _HYPHENATED[hyphens]), regex.V1 | regex.S)


# For the short cut past the pattern: what may stand around a plain word, and the words that are
# not plain, with or without a full stop behind them.
_HEADS = {head: tuple(head) for head in ["", '"', "(", "“", "[", "$", '("']}
_TAILS = {tail: tuple(tail) for tail in ',.!?;:")”]'} | {
    "": (),
    **{tail: tuple(tail) for tail in ['."', ',"', '?"', '!"', ".)", ").", "),", ".”", ",”", '",']},
    **{tail: (tail,) for tail in ["..", "...", "....", "!!", "!!!", "??", "???"]},
}
_NOT_PLAIN = frozenset(JOINED)
_NOT_BEFORE_STOP = frozenset([*JOINED, *ABBREVIATIONS, *DAYS, "etc"])
_CLITICS = frozenset(["s", "re", "ve", "ll", "d", "m"])


def _split_plain(piece: str) -> tuple[str, ...] | None:
    """What the pattern would give for the usual kinds of pieces, or nothing for the others."""
    if not piece.isascii() and "“" not in piece and "”" not in piece:
        return None
    if piece.isalpha():
        return None if piece.lower() in _NOT_PLAIN else (piece,)
    core = piece.lstrip('"(“[$').rstrip(',.!?;:")”]')
    before, _, after = piece.partition(core) if core else (piece, "", "")
    head, tail = _HEADS.get(before), _TAILS.get(after)
    if head is None or tail is None or len(core) < 2 or not core.isascii():
        return None  # one letter may be an initial or part of a face
    if core.isalpha():
        lower = core.lower()
        if lower in (_NOT_BEFORE_STOP if after[:1] == "." else _NOT_PLAIN):
            return None
        return (*head, core, *tail)
    if core.isdigit():
        return (*head, core, *tail)
    word, quote, clitic = core.partition("'")
    if clitic in ("t", "T") and len(word) > 1 and word[-1] in "nN":
        word, quote = word[:-1], word[-1] + quote
    elif clitic.lower() not in _CLITICS:
        return None
    if not word.isalpha() or word.lower() in _NOT_PLAIN:
        return None
    return (*head, word, quote + clitic, *tail)


class WordTokenizer(PieceTokenizer):
    """Words and punctuation.

    >>> WordTokenizer().tokens("Don't pay $5.50, it's Mr. Smith's e-mail!")
    ['Do', "n't", 'pay', '$', '5.50', ',', 'it', "'s", 'Mr.', 'Smith', "'s", 'e-mail', '!']
    >>> WordTokenizer(hyphens="keep").tokens("a well-known fact")
    ['a', 'well-known', 'fact']
    """

    def __init__(self, hyphens: Hyphens = "split") -> None:
        super().__init__()
        self.hyphens: Hyphens = hyphens

    def split_piece(self, piece: str) -> tuple[str, ...]:
        return _split_plain(piece) or self.split_by_rules(piece)

    def split_by_rules(self, piece: str) -> tuple[str, ...]:
        """The pattern itself; ``_split_plain`` is only a short cut to the same answer."""
        tokens: list[str] = []
        for match in _pattern(self.hyphens).finditer(piece):
            token = match.group()
            cut = JOINED.get(token.lower())
            tokens += (token[:cut], token[cut:]) if cut else (token,)
        return tuple(tokens)

    def tokens(self, text: str) -> list[str]:
        tokens = super().tokens(text)
        if tokens and len(tokens[-1]) > 2 and tokens[-1].lower() in ENDERS:
            tokens[-1:] = [tokens[-1][:-1], "."]
        return tokens

    def spans(self, text: str) -> list[Span]:
        return find_spans(text, self.tokens(text))
