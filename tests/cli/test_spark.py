"""Text commands under Spark's ``pipe``: the bytes of a single process, whatever the partitions."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_models import make_classifier, make_tagger

pyspark = pytest.importorskip("pyspark")
pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")

NLPKIT = [sys.executable, "-m", "nlpkit"]
TEXT = Path(__file__).parents[2] / "sample_corpora" / "tales.txt"


@pytest.fixture(scope="module")
def context() -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = pyspark.SparkConf().set("spark.ui.enabled", "false").setMaster("local[2]")
    context = pyspark.SparkContext(conf=settings)
    context.setLogLevel("ERROR")
    yield context
    context.stop()


def run(arguments: list[str], text: str = "") -> str:
    """What a single process writes."""
    done = subprocess.run([*NLPKIT, *arguments], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_pipes_of_partitions_give_the_bytes_of_one_process(context: Any, tmp_path: Path) -> None:
    make_tagger(tmp_path / "tagger")
    make_classifier(tmp_path / "classifier", "bow")
    lines = [line for line in TEXT.read_text().splitlines() if line][:60]
    text = "".join(f"{line}\n" for line in lines)
    data = context.parallelize(lines, 3)

    def piped(rows: Any, *arguments: str) -> Any:
        return rows.pipe(shlex.join([*NLPKIT, *arguments]), checkCode=True)

    tokens = piped(data, "tokenize").cache()
    alone = run(["tokenize"], text)
    assert "".join(f"{line}\n" for line in tokens.collect()) == alone
    for command in (
        ["tag", "predict", str(tmp_path / "tagger"), "--input", "text", "--quiet"],
        ["classify", "predict", str(tmp_path / "classifier"), "--input", "text", "--quiet"],
    ):
        found = "".join(f"{line}\n" for line in piped(data, *command).collect())
        assert found == run(command, text)
    parts = piped(tokens, "vocab", "build").glom().collect()
    names = []
    for number, part in enumerate(parts):
        names.append(str(tmp_path / f"{number}.tsv"))
        Path(names[-1]).write_text("".join(f"{line}\n" for line in part))
    assert run(["vocab", "merge", *names]) == run(["vocab", "build"], alone)
