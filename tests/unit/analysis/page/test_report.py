"""The page of a sweep is one file, and has what users write literally."""

import re


def test_report_is_self_contained(main):
    page = (main / "report.html").read_text()
    assert not re.findall(r"https?://", page)
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"(?!data:)", page)
    assert page.count("data:image/") >= 3 + 6
    assert "mean ± standard error over 3 seeds" in page


def test_report_escapes_what_users_write(main):
    page = (main / "report.html").read_text()
    assert "::: &lt;b&gt;" in page and "::: <b>" not in page
