"""A file with all that is packed inside it: archives, metadata, compressed and encoded parts."""

import base64
import gzip
import html
import io
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from urllib.parse import unquote_to_bytes

Part = tuple[str, bytes]
_STREAM = re.compile(rb"stream\r?\n(.*?)\r?\n?endstream", re.DOTALL)
_DRAWN = re.compile(rb"(\[[^\[]*?\]\s*TJ|\((?:[^()\\]|\\.)*\)\s*Tj)", re.DOTALL)
_TEXTS = re.compile(rb"\(((?:[^()\\]|\\.)*)\)", re.DOTALL)
_DATA_URL = re.compile(r"base64,\s*([A-Za-z0-9+/=\s]{16,})")
_ESCAPED_SIGN = re.compile(r"\\([!-/:-@\[-`{-~])")
_ESCAPED_SPACE = re.compile(r"\\[nrt]")
_ESCAPED_LETTER = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|U000([0-9A-Fa-f]{5}))")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}")
_CODED = re.compile(r"(?<=base64,)[A-Za-z0-9+/=\s]{16,}|[A-Za-z0-9+/]{1000,}={0,2}")


def layers(where: str, content: bytes) -> Iterator[tuple[str, str | bytes]]:
    """Yields a file, and whatever is packed in it, down to the last layer.

    It looks into zip and npz, gzip, arrays of text, PNG and PDF, and in text into base64 (data
    URLs), percent signs and codes of letters.

    Args:
        where: The file's name.
        content: Its bytes.

    Yields:
        Where a layer is, and the layer: text if it is UTF-8, else bytes.
    """
    text = _as_text(content)
    # Letters that stand for other bytes say nothing themselves; what they stand for is a layer.
    yield where, content if text is None else _CODED.sub(" ", text)
    for start, parts in _FORMATS.items():
        if content.startswith(start):
            for name, part in parts(content):
                yield from layers(f"{where}, {name}", part)
    if text is not None:
        decoded = _decoded(text)
        if decoded != text:
            yield f"{where}, decoded", decoded
        for name, part in _encoded(text):
            yield from layers(f"{where}, {name}", part)


def _as_text(content: bytes) -> str | None:
    """The text that bytes are, without plotly's own code, which is public and full of words."""
    try:
        text = None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None
    if text is not None and len(text) > 1_000_000 and "plotly" in text:
        text = text.replace(_plotly(), "")
    return text if text is None else plain(text)


def plain(text: str) -> str:
    """Text without the backslashes of LaTeX and Markdown, its accents in one letter each."""
    return unicodedata.normalize("NFC", _ESCAPED_SIGN.sub(r"\1", text))


def _decoded(text: str) -> str:
    """Text with the letters that JSON, YAML and HTML write as codes."""
    letters = _ESCAPED_LETTER.sub(
        lambda code: chr(int("".join(filter(None, code.groups())), 16)), text
    )
    return plain(html.unescape(_ESCAPED_SPACE.sub(" ", letters)))


@cache
def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _zip(content: bytes) -> Iterator[Part]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            yield "name of a member", member.filename.encode()
            yield "comment", member.comment
            yield "extra field", member.extra
            yield member.filename, archive.read(member)
        yield "comment", archive.comment


def _gzip(content: bytes) -> Iterator[Part]:
    if content[3:4] == b"\x08":  # the name of the file that it was
        yield "header", _latin(content[10:].split(b"\0")[0])
    yield "unpacked", gzip.decompress(content)


def _array(content: bytes) -> Iterator[Part]:
    """The description of an array, and its values where they are text."""
    import numpy as np

    array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    yield "dtype", str(array.dtype).encode()
    if array.dtype.kind in "US":
        yield "values", "\n".join(map(str, array.astype("U").ravel())).encode()


def _png(content: bytes) -> Iterator[Part]:
    """The chunks that are no pixels, packed ones unpacked."""
    place = 8
    while place + 8 <= len(content):
        length = int.from_bytes(content[place : place + 4], "big")
        kind = content[place + 4 : place + 8]
        chunk = content[place + 8 : place + 8 + length]
        place += 12 + length
        if kind not in (b"IHDR", b"PLTE", b"IDAT", b"IEND"):
            yield f"chunk {kind.decode('latin-1')}", _latin(chunk.replace(b"\0", b"\n"))
            for packed in re.finditer(b"\x78", chunk):
                yield "packed text", _inflate(chunk[packed.start() :])


def _pdf(content: bytes) -> Iterator[Part]:
    """What is outside of streams (with the metadata), the streams, and the text that they draw."""
    outside = _STREAM.sub(b"", content[5:])  # else it would be a PDF again
    yield "metadata", _letters(outside)
    for number, match in enumerate(_STREAM.finditer(content), start=1):
        stream = _inflate(match[1]) or match[1]
        yield f"stream {number}", stream
        # The letters of a word stand apart, for kerning.
        drawn = [b"".join(_TEXTS.findall(array)) for array in _DRAWN.findall(stream)]
        yield f"text of stream {number}", _letters(b"\n".join(drawn))


def _letters(text: bytes) -> bytes:
    """Text of one or two bytes a letter, as far as it is Latin."""
    return _latin(text.replace(b"\xfe\xff", b" ").replace(b"\0", b""))


def _encoded(text: str) -> Iterator[Part]:
    urls = [match[1] for match in _DATA_URL.finditer(text)]
    for code in [*urls, *_BASE64.findall(_DATA_URL.sub("", text))]:
        code = re.sub(r"[\s=]", "", code)
        if len(code) % 4 != 1:  # else it only looks like base64
            yield "base64", base64.b64decode(code + "=" * (-len(code) % 4))
    if re.search(r"%[0-9A-Fa-f]{2}", text):
        decoded = unquote_to_bytes(text)
        if decoded != text.encode():
            yield "percent signs", decoded


def _inflate(content: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(content)
    except zlib.error:
        return b""


def _latin(content: bytes) -> bytes:
    return content.decode("latin-1").encode()


_FORMATS: dict[bytes, Callable[[bytes], Iterator[Part]]] = {
    b"PK\x03\x04": _zip,
    b"\x1f\x8b": _gzip,
    b"\x93NUMPY": _array,
    b"\x89PNG\r\n\x1a\n": _png,
    b"%PDF-": _pdf,
}
