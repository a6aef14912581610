"""Tokens, sentences, subwords, vocabularies and start-up, beside the tools they replace.

    python benchmarks/bench_tokens.py --conllu dev.conllu --text raw.txt --corpus corpus.txt

Without options it runs on the sample corpora, which are too small and too easy to mean much.
Quality is scored on ``--conllu``: the text of a sentence goes in, spans of words come out; the
sentences of a paragraph are joined by a space and split again. Nothing was tuned on that file.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import (
    SAMPLES,
    Sentence,
    Spans,
    find_spans,
    nlpkit_command,
    paragraphs,
    print_table,
    read_conllu,
    run_command,
    span_f1,
    take_turns,
    take_turns_new,
)


def bench_words(sentences: list[Sentence], lines: list[str]) -> None:
    """Span F1 and speed of word tokenisers on one core.

    All but NLTK's remember what they have seen, so speed is measured twice: of new tokenisers, and
    of ones that know the text.
    """
    import spacy
    from nltk.tokenize import NLTKWordTokenizer

    from nlpkit.text.tokenizers import get_tokenizer

    def spacy_spans(text: str) -> Spans:
        tokens = (token for token in blank(text) if not token.is_space)
        return [(token.idx, token.idx + len(token)) for token in tokens]

    blank, treebank = spacy.blank("en"), NLTKWordTokenizer()
    spans: dict[str, Callable[[str], Spans]] = {
        "nlpkit word": get_tokenizer("word").spans,
        "spaCy blank en": spacy_spans,
        "NLTK": lambda text: list(treebank.span_tokenize(text)),
    }

    def over_lines(tokens: Callable[[str], Any]) -> Callable[[], Any]:
        return lambda: [tokens(line) for line in lines]

    def spacy_tokens(model: Any) -> Callable[[str], list[str]]:
        return lambda line: [token.text for token in model(line)]

    makers: dict[str, Callable[[], Callable[[], Any]]] = {
        "nlpkit word": lambda: over_lines(get_tokenizer("word").tokens),
        "spaCy blank en": lambda: over_lines(spacy_tokens(spacy.blank("en"))),
        "NLTK": lambda: over_lines(NLTKWordTokenizer().tokenize),
    }
    first = take_turns_new(makers)
    again = take_turns({name: make() for name, make in makers.items()})
    size = sum(len(line.encode()) + 1 for line in lines) / 1e6
    gold = [sentence.words for sentence in sentences]
    rows = []
    for name, function in spans.items():
        score = span_f1(gold, [function(sentence.text) for sentence in sentences])
        row: list[Any] = [name, score]
        for speed in (first, again):
            ratio = speed["spaCy blank en"] / speed[name]
            row += [size / speed[name], f"{ratio:.1f} x"]
        rows.append(row)
    columns = ["system", "F1", "MB/s new", "to spaCy", "MB/s again", "to spaCy"]
    print_table("Word tokenisers, one core", columns, rows)


def bench_sentences(sentences: list[Sentence]) -> None:
    """Span F1 and speed of sentence splitters."""
    import pysbd
    import spacy
    from nltk.tokenize.punkt import PunktSentenceTokenizer, PunktTrainer

    from nlpkit.text.sentences import sentence_spans

    texts = paragraphs(sentences)
    sentencizer = spacy.blank("en")
    sentencizer.add_pipe("sentencizer")
    segmenter = pysbd.Segmenter(language="en", clean=False)
    # punkt's own model is a download, so it learns from the text it splits, as it was made to do
    trainer = PunktTrainer()
    trainer.train("\n".join(text for text, _ in texts))
    punkt = PunktSentenceTokenizer(trainer.get_params())
    systems: dict[str, Callable[[str], Spans]] = {
        "nlpkit": sentence_spans,
        "spaCy sentencizer": lambda text: [
            (found.start_char, found.end_char) for found in sentencizer(text).sents
        ],
        "NLTK punkt, trained here": lambda text: list(punkt.span_tokenize(text)),
        "pysbd": lambda text: find_spans(text, segmenter.segment(text)),
    }
    results: dict[str, list[Spans]] = {}

    def runner(name: str) -> Callable[[], None]:
        def run() -> None:
            results[name] = [systems[name](text) for text, _ in texts]

        return run

    speed = take_turns({name: runner(name) for name in systems}, rounds=1)
    gold = [spans for _, spans in texts]
    size = sum(len(text.encode()) for text, _ in texts) / 1e6
    rows = [[name, span_f1(gold, results[name]), size / speed[name]] for name in systems]
    print_table("Sentence splitters", ["system", "F1", "MB/s"], rows)


def first_lines(path: str, megabytes: int = 10) -> list[str]:
    """The lines of the beginning of a file: a longer text, in which most words have been seen."""
    with open(path, "rb") as file:
        return file.read(megabytes * 1_000_000).decode("utf-8", "ignore").split("\n")


def bench_subwords(lines: list[str], vocab_size: int) -> None:
    """Equal ids, and speed against the library's quickest call on the same cores."""
    from tokenizers import Tokenizer

    from nlpkit.text.subwords import Subwords

    model = Subwords.train(lines, vocab_size=vocab_size)
    library = model.backend
    expected = [encoding.ids for encoding in library.encode_batch_fast(lines)]
    if model.encode_many(lines) != expected:
        sys.exit("the ids differ from those of the tokenizers library")
    text = library.to_str()

    def by_library(tokenizer: Any) -> Callable[[], Any]:
        return lambda: [encoding.ids for encoding in tokenizer.encode_batch_fast(lines)]

    def by_nlpkit(tokenizer: Any) -> Callable[[], Any]:
        fresh = Subwords(tokenizer)
        return lambda: fresh.encode_many(lines)

    makers: dict[str, Callable[[], Callable[[], Any]]] = {
        "tokenizers": lambda: by_library(Tokenizer.from_str(text)),
        "nlpkit": lambda: by_nlpkit(Tokenizer.from_str(text)),
    }
    first = take_turns_new(makers, rounds=5)
    again = take_turns({name: make() for name, make in makers.items()}, rounds=5)
    size = sum(len(line.encode()) + 1 for line in lines) / 1e6
    rows = [
        [
            name,
            size / first[name],
            f"{first['tokenizers'] / first[name]:.1f} x",
            size / again[name],
            f"{again['tokenizers'] / again[name]:.1f} x",
        ]
        for name in makers
    ]
    print_table(
        f"Byte-level BPE of {len(model)} subwords, {size:.1f} MB, ids equal on all "
        f"{len(lines):,} lines",
        ["system", "MB/s new", "to tokenizers", "MB/s again", "to tokenizers"],
        rows,
    )


def bench_vocab(corpus: str) -> None:
    """The whole command against gensim's pass over the same file, import left out."""
    import gensim

    def peer() -> None:
        gensim.models.Word2Vec(min_count=1).build_vocab(corpus_file=corpus)

    command = nlpkit_command("vocab", "build", corpus, "-o", "/dev/null")
    run_command(command)  # compiles the kernel where that was never done
    speed = take_turns(
        {"gensim build_vocab": peer, "nlpkit vocab build": lambda: run_command(command)}
    )
    rows = [
        [name, seconds, f"{speed['gensim build_vocab'] / seconds:.1f} x"]
        for name, seconds in speed.items()
    ]
    size = Path(corpus).stat().st_size / 1e6
    print_table(f"Vocabulary of {size:.0f} MB", ["system", "seconds", "to gensim"], rows)


def bench_jobs(text: str, megabytes: int) -> None:
    """Two processes against one, and memory by file size."""
    sample = Path(text).read_bytes()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in (megabytes // 10 or 1, megabytes):
            path = Path(folder) / f"{size}.txt"
            path.write_bytes(sample * (size * 1_000_000 // len(sample) + 1))
            runs: dict[int, Any] = {}
            for _ in range(2):
                for jobs in (1, 2):
                    done = run_command(nlpkit_command("tokenize", "--jobs", str(jobs), str(path)))
                    runs[jobs] = min(runs.get(jobs, done), done)
            for jobs, done in runs.items():
                ratio = runs[1].seconds / done.seconds
                rows.append(
                    [f"{size} MB, --jobs {jobs}", done.seconds, done.megabytes, f"{ratio:.2f} x"]
                )
    columns = ["nlpkit tokenize", "seconds", "peak MB", "to one job"]
    print_table("Processes", columns, rows)


def bench_startup() -> None:
    """Cold commands: nothing but starting up."""
    python = sys.executable
    blank = "import sys, spacy; spacy.blank('en')(sys.stdin.read())"
    pairs = {
        "--help": (nlpkit_command("--help"), [python, "-m", "spacy", "--help"]),
        "tokenise 'hi'": (nlpkit_command("tokenize"), [python, "-c", blank]),
    }
    rows = []
    for what, (ours, peer) in pairs.items():

        def runner(command: list[str]) -> Callable[[], Any]:
            return lambda: run_command(command, b"hi\n")

        speed = take_turns({"ours": runner(ours), "peer": runner(peer)}, rounds=5)
        ratio = f"1/{speed['peer'] / speed['ours']:.1f}"
        rows.append([what, speed["ours"], speed["peer"], ratio])
    print_table("Start-up, seconds", ["what", "nlpkit", "spaCy", "ratio"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conllu", default=str(SAMPLES / "tagged-test.conllu"))
    parser.add_argument("--text", default=str(SAMPLES / "tales.txt"))
    parser.add_argument("--corpus", default=str(SAMPLES / "world.txt"))
    parser.add_argument("--vocab-size", type=int, default=8000)
    parser.add_argument("--megabytes", type=int, default=10, help="size of the file for --jobs")
    parser.add_argument(
        "--only", nargs="*", help="words sentences subwords longer vocab jobs startup"
    )
    options = parser.parse_args()
    lines = Path(options.text).read_text(encoding="utf-8").split("\n")
    sentences = list(read_conllu(options.conllu))
    parts: dict[str, Callable[[], None]] = {
        "words": lambda: bench_words(sentences, lines),
        "sentences": lambda: bench_sentences(sentences),
        "subwords": lambda: bench_subwords(lines, options.vocab_size),
        "longer": lambda: bench_subwords(first_lines(options.corpus), options.vocab_size),
        "vocab": lambda: bench_vocab(options.corpus),
        "jobs": lambda: bench_jobs(options.text, options.megabytes),
        "startup": bench_startup,
    }
    for name in options.only or parts:
        parts[name]()


if __name__ == "__main__":
    main()
