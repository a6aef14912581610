"""``nlpkit tag``: train, predict, evaluate and check taggers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from nlpkit import modeldir, textio
from nlpkit import settings as limits
from nlpkit.cli import classify_output, encoder_inspect, options
from nlpkit.cli.flags import argument, flag, flag_of
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import Notes, Writer, open_output, rows_format, write_report, write_rows
from nlpkit.cli.progress_training import check_place, draw_run, prepare_torch
from nlpkit.plots import check_picture
from nlpkit.tasks.tag.layouts import LayoutChoice, TrainingLayout
from nlpkit.tasks.tag.settings import TaggerSettings
from nlpkit.text.pipeline import TokenSettings
from nlpkit.text.records import TOKEN_KEYS, Reading, with_record
from nlpkit.text.vocab import on_one_line

if TYPE_CHECKING:
    from nlpkit.tasks.tag.explain import TagExplanation

app = new_app("Tag words with parts of speech, entities or other labels.")
app.command("inspect")(encoder_inspect.inspect_tagger)


@app.command()
def train(
    *,
    data: list[str] = argument(..., "Tagged sentences.", metavar="TRAIN"),
    output: options.NewModel,
    settings: TaggerSettings,
    layout: TrainingLayout,
    dev: str | None = flag(
        None, "Held-out sentences: the best epoch on them is kept.", metavar="FILE"
    ),
    vectors: options.StartVectors = None,
    flags: options.Training,
    decoding: options.Decoding,
) -> None:
    """Learn to tag from tagged sentences.

    Layout and entity scheme (IOB1, IOB2, BIOES) are detected and written back by predict. A tag
    sequence that breaks its scheme is reported with its line. JSON lines have tokens and tags (or
    ner_tags, as Hugging Face has them), or a text and entities: [[start, end, type], ...].

    With --pretrained a BERT, an ELMo or a GPT gives the states of words, trained further or left as
    it is (--freeze all).

    Examples:
      $ nlpkit tag train sample_corpora/tagged-train.conllu -o pos.model
      $ nlpkit tag train sample_corpora/tagged-train.conllu --column misc:NER -o ner.model
      $ nlpkit tag train sample_corpora/tagged-train.conllu --vectors world.model -o pos.model
    """
    from nlpkit.tasks.tag.pretrained_train import tagger_run
    from nlpkit.tasks.tag.reading import read_tagged
    from nlpkit.tasks.tag.train import TrainingData

    notes = check_place(output, flags)
    tagged = TrainingData.of(*read_tagged(data, layout, **vars(decoding)))
    held = read_tagged([dev], layout, **vars(decoding))[0] if dev else []
    for line in tagged.warnings():
        notes.warn(line)
    run = tagger_run(
        tagged,
        settings,
        dev=held,
        vectors=vectors,
        device=prepare_torch(flags, notes, sparse=True),
    )
    draw_run(run, output, notes, resume=flags.resume, force=flags.force)


@app.command()
def predict(
    *,
    model: options.Model,
    inputs: options.Inputs = None,
    input: Literal["auto", "text", "tokens", "columns", "jsonl", "csv", "tsv"] = flag(
        "auto",
        "text: raw, tokenised here; tokens: between spaces; columns: as in training; "
        "jsonl, csv, tsv: records with tokens or a text.",
        rich_help_panel=limits.DATA,
    ),
    key: flag_of(Reading, "key") = None,  # type: ignore[valid-type]
    format: Literal["columns", "slash", "jsonl", "spans", "ner_tags", "color"] | None = flag(
        None,
        "columns: as they came, tags filled in; slash: word/TAG; jsonl: one object per "
        'sentence; spans: text and entities [[0, 4, "PER"]] (Doccano, spaCy); ner_tags: tokens '
        "and ner_tags (Hugging Face); color: entities marked in the text.",
        "--format",
        "-f",
        show_default="columns for columns, else slash",
    ),
    token_column: flag_of(LayoutChoice, "token_column") = None,  # type: ignore[valid-type]
    output: options.Output = "-",
    threads: options.EncoderThreads = 0,
    decoding: options.Decoding,
) -> None:
    """Tag raw text, tokenised lines, or the columns that training took, as a stream.

    Columns go out as they came in, byte for byte, but for the tags. The keys of jsonl are text,
    tokens, tags, probabilities (one a token) and, for entities, entities: start and end (in
    characters of the text), type, text and probability; a record that came in keeps its other keys,
    and with spans and ner_tags its own name for what is filled in.

    Examples:
      $ echo "He said Teddy Roosevelt was a great president" | nlpkit tag predict pos.model
      $ nlpkit tag predict ner.model --json sample_corpora/tales.txt | head -3
      $ nlpkit tag predict pos.model sample_corpora/tagged-test.conllu > predicted.conllu
    """
    options.calm_threads()
    from nlpkit.cli.tag_output import predict_stream
    from nlpkit.tasks.tag.predictor import Tagger
    from nlpkit.tasks.tag.records import usual_blocks

    chosen = format or "auto"
    paths = options.resolve_inputs(inputs)
    tagger = Tagger.load(model)
    options.use_encoder_threads(tagger, threads)
    if input in ("text", "tokens", "columns"):
        blocks = textio.read_blocks(paths, **vars(decoding))
    else:
        reading = Reading(input=input, key=key, **vars(decoding))  # type: ignore[arg-type]
        blocks = options.read_records(paths, reading, TOKEN_KEYS, tables=False)
        blocks = usual_blocks(blocks, decoding.errors)
    with open_output(output) as out:
        predict_stream(
            tagger,
            blocks,
            out,
            input=input,
            format=chosen,
            errors=decoding.errors,
            token_column=token_column,
            to_file=output != "-",
        )


@app.command()
def evaluate(
    *,
    model: str = argument(..., "A model, or the right tags.", metavar="MODEL|GOLD"),
    test: str = argument(..., "Tagged sentences to compare with.", metavar="TEST|PREDICTED"),
    layout: LayoutChoice,
    confusion: bool = flag(False, "Show which tag was taken for which."),
    plot: str | None = flag(
        None, "Draw confusions and calibration: .png, .svg, .pdf or .html.", metavar="FILE"
    ),
    worst: int = flag(0, "Show so many sentences with most mistakes.", min=0, max=limits.MANY),
    threads: options.EncoderThreads = 0,
    format: options.RowsFormat = None,
    decoding: options.Decoding,
) -> None:
    """Score a model on tagged sentences, or one tagged file against another.

    Accuracy over all, known and unknown words; precision, recall and F1 of each tag; for entities
    the F1 by the rule of conlleval: an entity counts when its first word, last word and type are
    right. --plot also shows whether the model is as sure as it is right. The keys of --json are
    those of the lines, tags and types being objects by name.

    Examples:
      $ nlpkit tag evaluate pos.model sample_corpora/tagged-test.conllu
      $ nlpkit tag evaluate ner.model sample_corpora/tagged-test.conllu --confusion --worst 3
      $ nlpkit tag evaluate sample_corpora/tagged-test.conllu predicted.conllu --plot confused.svg
    """
    options.calm_threads()
    from nlpkit.cli import tag_output
    from nlpkit.tasks.tag.evaluate import evaluate_files, evaluate_model
    from nlpkit.tasks.tag.predictor import Tagger

    check_picture(plot)
    model = os.fspath(modeldir.find_model(model))
    if os.path.isdir(model):
        tagger = Tagger.load(model)
        options.use_encoder_threads(tagger, threads)
        result = evaluate_model(tagger, test, layout, **vars(decoding), calibrate=plot is not None)
    else:
        result = evaluate_files(model, test, layout, **vars(decoding))
    if plot is not None:
        tag_output.draw_scores(result, plot)
    for note in result.notes:
        Notes().warn(note)
    record = tag_output.scores_record(result, confusion=confusion, worst=worst)
    sections = tag_output.score_sections(result, confusion=confusion, worst=worst)
    with open_output("-") as out:
        write_report(out, sections, record, rows_format(format))


@app.command()
def check(
    *,
    data: list[str] = argument(..., "Tagged files, the training part first.", metavar="DATA"),
    layout: LayoutChoice,
    format: options.RowsFormat = None,
    decoding: options.Decoding,
) -> None:
    """Look at tagged data: sizes, tags, illegal sequences, repeats, overlap of splits, advice.

    With several files each is compared with the first: sentences in common, unknown words, tags
    that the first never has. --json gives an object for each file and each comparison.

    Examples:
      $ nlpkit tag check sample_corpora/tagged-train.conllu sample_corpora/tagged-test.conllu
      $ nlpkit tag check --column misc:NER sample_corpora/tagged-train.conllu --json
    """
    from nlpkit.cli import tag_output
    from nlpkit.tasks.tag.check import check_data, check_overlap
    from nlpkit.tasks.tag.reading import read_tagged

    read = [read_tagged([path], layout, **vars(decoding))[0] for path in data]
    reports = [check_data(path, sentences) for path, sentences in zip(data, read, strict=True)]
    overlaps = [
        check_overlap(data[0], read[0], path, sentences)
        for path, sentences in zip(data[1:], read[1:], strict=True)
    ]
    with open_output("-") as out:
        tag_output.show_check(out, reports, overlaps, rows_format(format))


EXPLAINED = ("line", "place", "word", "tag", "probability", "hidden", "influence")


@app.command()
def explain(
    model: options.Model,
    inputs: options.Inputs = None,
    word: int | None = flag(
        None, "Explain this word, from 1.", min=1, max=limits.MANY, show_default="all"
    ),
    tokenizer: flag_of(TokenSettings, "tokenizer") = "word",  # type: ignore[valid-type]
    format: options.ExplainFormat = None,
    threads: options.EncoderThreads = 0,
    *,
    reading: Reading,
) -> None:
    """Show which words decided a tag: how much less sure the model is when each is hidden.

    Lines of text are read, one sentence each. The influence of a word on the tag of another is how
    far the log-odds of that tag fall when the word is hidden. Columns: line, place (from 1), word,
    tag, probability, hidden, influence. Keys of jsonl: word, place, tag, probability, influence (a
    list of word, influence).

    Examples:
      $ echo "He said Teddy bears are on sale." | nlpkit tag explain pos.model --word 3
      $ echo "He said Teddy bears are on sale." | nlpkit tag explain pos.model --json
    """
    from nlpkit.tasks.tag.explain import explain_tags
    from nlpkit.tasks.tag.predictor import Tagger
    from nlpkit.text.tokenizers import get_tokenizer

    paths = options.resolve_inputs(inputs)
    tagger = Tagger.load(model)
    options.use_encoder_threads(tagger, threads)
    cut = get_tokenizer(tokenizer)
    shown = format or classify_output.explain_format()

    def explained(out: Writer) -> Iterator[tuple[int, str, list[str], TagExplanation]]:
        for number, line in enumerate(options.read_lines(paths, reading), 1):
            if tokens := cut.tokens(line):
                places = None if word is None else [word - 1]
                for found in explain_tags(tagger, tokens, places):
                    yield number, line, tokens, found
                out.flush()

    with open_output("-") as out:
        if shown not in ("color", "jsonl"):
            write_rows(
                out, EXPLAINED, (row for one in explained(out) for row in _rows(*one)), shown
            )
            return
        for _, line, tokens, found in explained(out):
            _write(out, line, tokens, found, shown)


def _rows(number: int, _: str, tokens: list[str], found: TagExplanation) -> Iterator[list[Any]]:
    """A row for each word of the sentence that was hidden."""
    name, tag = on_one_line(tokens[found.place]), on_one_line(found.tag)
    for hidden, value in zip(map(on_one_line, tokens), found.influence, strict=True):
        yield [number, found.place + 1, name, tag, found.probability, hidden, f"{value:+.4f}"]


def _write(out: Writer, line: str, tokens: list[str], found: TagExplanation, format: str) -> None:
    pairs = list(zip(tokens, found.influence, strict=True))
    if format == "jsonl":
        record = {
            "word": tokens[found.place],
            "place": found.place + 1,
            "tag": found.tag,
            "probability": round(found.probability, 6),
            "influence": [{"word": w, "influence": round(value, 4)} for w, value in pairs],
        }
        out.write_json(with_record(line, record))
        return
    strongest = max((abs(value) for value in found.influence), default=1.0) or 1.0
    words = [classify_output.shade(out.safe(w), value / strongest) for w, value in pairs]
    name = out.safe(on_one_line(tokens[found.place]))
    share = f"{100 * found.probability:.0f}%"
    out.write_styled(f"{name}/{out.safe(found.tag)} {share}\t{' '.join(words)}\n")
