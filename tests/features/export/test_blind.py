"""Texts that reveal the authors of a sweep are found in every kind of file."""

import io

import numpy as np
import pytest

from qdsweep.features.export.blind import findings, secrets_of
from qdsweep.features.export.pack import _attempts as attempts_of
from qdsweep.records.paths import RunDir


def drawing(kind: str, words: str = "", **metadata: str) -> bytes:
    from matplotlib.figure import Figure

    figure, buffer = Figure(), io.BytesIO()
    figure.text(0.5, 0.5, words)
    figure.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()


def npz(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["vm", "login-nora7.cluster.example.edu"], ids=["short", "long"])
@pytest.mark.parametrize(
    ("file", "hide"),
    [
        pytest.param("a.md", str.encode, id="text"),
        pytest.param("a.html", lambda s: f"<!-- {s.upper()} -->".encode(), id="upper case"),
        pytest.param("a.csv", lambda s: b"\xe9," + s.encode(), id="not quite text"),
        pytest.param("a.svg", lambda s: drawing("svg", f"on {s}"), id="drawn"),
        pytest.param("a.pdf", lambda s: drawing("pdf", Author=s), id="pdf metadata"),
        pytest.param("a.pdf", lambda s: drawing("pdf", Author=f"{s} \u2713"), id="in utf-16"),
        pytest.param("a.npz", lambda s: npz(host=np.array([s])), id="npz of text"),
        pytest.param("a.npz", lambda s: npz(host=np.array([s.encode()])), id="npz of bytes"),
        pytest.param("a.npz", lambda s: npz(a=np.zeros(3, dtype=[(s, "f8")])), id="npz field"),
        pytest.param("a.npz", lambda s: npz(**{s: np.zeros(3)}), id="npz name"),
    ],
)
def test_all_text_is_searched(name, file, hide, tmp_path):
    secrets = secrets_of(tmp_path, [{"host": name, "slurm_job": None}])
    content = hide(name)
    assert list(findings(file, content, secrets)), content[:300]
    assert not list(findings(file, hide("another"), secrets))


LETTERS = "a+vm/" * 300
PAGE = f'<img src="data:image/png;base64,{LETTERS}"><script>x("{LETTERS}")</script>'
RNG = np.random.default_rng(1)
NUMBERS = npz(objective=RNG.normal(size=200_000), solution=RNG.normal(size=(2_000, 50)))


@pytest.mark.parametrize(
    ("host", "file", "content", "is_named"),
    [
        *(
            (host, "file", text, named)
            for text in (
                r"by jürgen\_o \\ n7",
                "by ju\u0308rgen_o; n7",
                "by j&uuml;rgen_o&lt;n7",
            )
            for host, named in (("jürgen_o", True), ("n7", True), ("rgen", False))
        ),
        ("_exp", "table.tex", r"lander\_exp", False),
        ("_exp", "table.tex", r"by \_exp", True),
        # A short name appears by chance in pixels and numbers, and inside words.
        ("vm", "archive.npz", NUMBERS, False),
        ("vm", "a.css", ":root { vmin: 3; n10: 2 } cvm kernel1", False),
        ("n1", "a.css", ":root { vmin: 3; n10: 2 } cvm kernel1", False),
        ("vm", "a.txt", "on vm-2", True),
        ("vm", "a.html", PAGE, False),
        ("vm", "a.html", f"{PAGE} on vm", True),
    ],
)
def test_escaped_names_are_found_and_parts_of_words_are_no_names(
    host, file, content, is_named, tmp_path
):
    content = content if isinstance(content, bytes) else content.encode()
    traces = list(findings(file, content, secrets_of(tmp_path, [{"host": host}])))
    assert [host in trace.lower() for trace in traces] == [True] * is_named


def test_hosts_of_workers_are_known_from_the_log(tmp_path):
    (tmp_path / "state").mkdir()
    line = "12:00 INFO worker tls://10.0.0.7:4711 (process 12 on node17.cluster), 3 now\n"
    (tmp_path / "state/run.log").write_text(line)
    assert {"host": "node17.cluster"} in attempts_of(RunDir(tmp_path))
