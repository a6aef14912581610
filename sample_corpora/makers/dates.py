"""Dates as people write them, and in ISO 8601: one sequence of characters into another."""

from datetime import date, timedelta
from random import Random

TRAIN, TEST = 2000, 300
FIRST, DAYS = date(1900, 1, 1), 73_000  # two centuries
MONTHS = (
    "January February March April May June July August September October November December"
).split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th ..."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def forms(day: date) -> list[str]:
    """Ways to write a date, all of which say the same."""
    month, weekday = MONTHS[day.month - 1], WEEKDAYS[day.weekday()]
    number, nth, year = day.day, ordinal(day.day), day.year
    return [
        f"the {nth} of {month}, {year}",
        f"{month} {number}, {year}",
        f"{number} {month} {year}",
        f"{weekday}, {month} {nth}, {year}",
        f"{nth} {month[:3]} {year}",
        f"{month[:3]} {number} {year}",
        f"{weekday[:3]} {number} {month[:3]} {year}",
        f"{number}.{day.month}.{year}",
        f"on the {nth} day of {month} in {year}",
        f"{weekday} the {nth} of {month} {year}",
    ]


def make(random: Random) -> dict[str, str]:
    """dates.tsv and dates-test.tsv; no date is in both."""
    days = random.sample(range(DAYS), TRAIN + TEST)
    lines = []
    for offset in days:
        day = FIRST + timedelta(days=offset)
        lines.append(f"{random.choice(forms(day))}\t{day.isoformat()}\n")
    return {"dates.tsv": "".join(lines[:TRAIN]), "dates-test.tsv": "".join(lines[TRAIN:])}
