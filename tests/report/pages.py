"""Reports for tests, and a strict HTML parser."""

from __future__ import annotations

from html.parser import HTMLParser

from drkm.experiments.report.chapters import Chapter, FailedRun, Report
from drkm.experiments.section import Claim, Figure, ResultTable, Section, Verdict

VOID = {"img", "meta", "br", "hr", "link", "input"}
#: text that must remain plain text everywhere
HOSTILE = "<script>alert(1)</script> \"quoted\" 'single' & <b>bold</b>"


class Reader(HTMLParser):
    """Elements with their attributes and the text of the page; elements must be closed in their order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert len({name for name, _ in attrs}) == len(attrs), f"<{tag}> has an attribute twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.text.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def drawn(title: str = "a figure"):
    from drkm.plotting import style

    with style() as plt:
        figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
        axes.plot([0, 1, 2], [1, 3, 2])
        axes.set_title(title.replace("$", ""))
    return figure


def section(name: str = "study", words: str = "words", wide: int = 4) -> Section:
    rows = [{f"{words} {k}": value for k, value in enumerate([words, *range(wide)])} for _ in range(30)]
    return Section(
        name=name,
        title=f"Study of {words}",
        text=f"First {words}.\n\nSecond, with σ_n and half_circle.",
        tables=[ResultTable("numbers", f"Numbers of {words}.", rows)],
        figures=[Figure("line", f"A line. More about {words}.", drawn)],
        claims=[
            Claim(f"It is {words}", "1.22", "1.31", Verdict.HELD, words),
            Claim("Never", "", f"2 of {words}", Verdict.FAILED, "because"),
            Claim("Perhaps", words, "–", Verdict.UNDECIDED, "too few"),
        ],
        settings={f"setting {words}": words},
    )


def report(words: str = "words", wide: int = 4) -> Report:
    finished = Chapter(section("study", words, wide), 4, 4, seconds=83.0, seeds=(0, 1), command="drkm reproduce study")
    failed = [FailedRun(f"task, {words}", f"ValueError: {words}")]
    partly = Chapter(section("partly", words), 4, 2, failed, 5.0, (0,), "drkm reproduce partly")
    absent = Chapter(section("absent", words), 3, 0, command="drkm reproduce absent --scale quick")
    machine = {"runs": 6, "host": "secret-name", "processor": f"CPU {words}", "cores": 2, "torch": "2.9", "drkm": "0"}
    return Report("quick", [finished, partly, absent], 6, [machine], "2026-01-01 12:00", "0.1")
