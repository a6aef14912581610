"""Numbers in digits and in words, in English and in Catalan."""

from random import Random

COUNT = 1500  # numbers of a file: all below 200, and others up to a million
MOST = 1_000_000

ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
ENGLISH_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
CATALAN = (
    "zero un dos tres quatre cinc sis set vuit nou deu onze dotze tretze catorze quinze setze "
    "disset divuit dinou"
).split()
CATALAN_TENS = "vint trenta quaranta cinquanta seixanta setanta vuitanta noranta".split()


def in_english(number: int) -> str:
    """342: three hundred and forty-two."""
    if number >= 1000:
        thousands, rest = divmod(number, 1000)
        behind = "" if not rest else (" and " if rest < 100 else " ") + in_english(rest)
        return f"{in_english(thousands)} thousand{behind}"
    if number >= 100:
        hundreds, rest = divmod(number, 100)
        behind = f" and {in_english(rest)}" if rest else ""
        return f"{ENGLISH[hundreds]} hundred{behind}"
    if number < 20:
        return ENGLISH[number]
    tens, rest = divmod(number, 10)
    return ENGLISH_TENS[tens - 2] + (f"-{ENGLISH[rest]}" if rest else "")


def in_catalan(number: int) -> str:
    """342: tres-cents quaranta-dos."""
    if number >= 1000:
        thousands, rest = divmod(number, 1000)
        before = "" if thousands == 1 else f"{in_catalan(thousands)} "
        return f"{before}mil" + (f" {in_catalan(rest)}" if rest else "")
    if number >= 100:
        hundreds, rest = divmod(number, 100)
        before = "cent" if hundreds == 1 else f"{CATALAN[hundreds]}-cents"
        return before + (f" {in_catalan(rest)}" if rest else "")
    if number < 20:
        return CATALAN[number]
    tens, rest = divmod(number, 10)
    between = "-i-" if tens == 2 else "-"  # vint-i-un, but trenta-un
    return CATALAN_TENS[tens - 2] + (f"{between}{CATALAN[rest]}" if rest else "")


def make(random: Random) -> dict[str, str]:
    """numbers-en.tsv and numbers-ca.tsv, with the same numbers in random order."""
    small = list(range(200))
    sizes = [10 ** random.randint(3, 6) for _ in range(2 * COUNT)]
    others = dict.fromkeys(random.randrange(200, size) for size in sizes)
    numbers = (small + list(others))[:COUNT]
    random.shuffle(numbers)
    return {
        "numbers-en.tsv": "".join(f"{n}\t{in_english(n)}\n" for n in numbers),
        "numbers-ca.tsv": "".join(f"{n}\t{in_catalan(n)}\n" for n in numbers),
    }
