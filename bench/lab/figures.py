"""Figures: medians with their spread, tables in Markdown, plots in SVG."""
import html
import math
import pathlib
import statistics

COLOURS = ["#1f6f8b", "#c8553d", "#6a8e3f", "#8d6a9f", "#d9a441", "#4d4d4d"]


class Series:
    """The values of one thing over the rounds."""

    def __init__(self):
        self.values = []

    def add(self, value):
        self.values.append(value)

    def median(self):
        return statistics.median(self.values)

    def spread(self):
        """Half of the range, relative to the median."""
        return (max(self.values) - min(self.values)) / 2 / self.median() if self.median() else 0


def ratio(a, b):
    """Round by round, because the machine changes between rounds more than within one."""
    out = Series()
    for x, y in zip(a.values, b.values):
        out.add(x / y if y else 0)
    return out


def count(value):
    return f"{value:,.0f}"


def ratio_text(series):
    if not series.values:
        return "–"
    low, high, middle = min(series.values), max(series.values), series.median()
    digits = 2 if middle < 10 else 1 if middle < 100 else 0
    return f"{middle:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def rate_text(series):
    return f"{count(series.median())} ± {series.spread() * 100:.0f} %" if series.values else "–"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def replace_between(path, name, text):
    """Puts the text between the two markers of that name in a document."""
    path = pathlib.Path(path)
    document = path.read_text()
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    if begin not in document or end not in document:
        raise SystemExit(f"{path} has no markers {begin} … {end}")
    head, rest = document.split(begin, 1)
    tail = rest.split(end, 1)[1]
    path.write_text(f"{head}{begin}\n{text.strip()}\n{end}{tail}")


# Plots.

def svg(width, height, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'font-family="sans-serif" font-size="12">\n'
            f'<rect width="{width}" height="{height}" fill="white"/>\n' + "\n".join(parts) +
            "\n</svg>\n")


def text(x, y, words, anchor="start", size=12, colour="#222"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
            f'fill="{colour}">{html.escape(str(words))}</text>')


def bars(path, title, rows, unit):
    """Horizontal bars: rows of (label, value, low, high, is_ours)."""
    left, width, step = 260, 860, 26
    height = 60 + step * len(rows)
    top = max((high for _, _, _, high, _ in rows), default=1) or 1
    room = width - left - 110
    parts = [text(10, 22, title, size=15)]
    for i, (label, value, low, high, ours) in enumerate(rows):
        y = 44 + i * step
        parts.append(text(left - 8, y + 13, label, "end"))
        parts.append(f'<rect x="{left}" y="{y}" width="{room * value / top:.1f}" height="17" '
                     f'fill="{COLOURS[0] if ours else "#9aa5ab"}"/>')
        a, b = left + room * low / top, left + room * high / top
        parts.append(f'<path d="M{a:.1f} {y + 8.5} H{b:.1f}" stroke="#222"/>')
        parts.append(text(b + 6, y + 13, f"{count(value)} {unit}"))
    pathlib.Path(path).write_text(svg(width, height, parts))


def curves(path, title, x_label, y_label, series):
    """Lines over a logarithmic x: series of (label, [(x, y), …])."""
    width, height, left, right, top, bottom = 860, 380, 80, 180, 44, 50
    points = [p for _, line in series for p in line]
    x_low, x_high = min(x for x, _ in points), max(x for x, _ in points)
    y_high = max(y for _, y in points) * 1.08 or 1
    span = math.log10(x_high / x_low) or 1

    def at(x, y):
        return (left + (width - left - right) * math.log10(x / x_low) / span,
                height - bottom - (height - top - bottom) * y / y_high)
    parts = [text(10, 22, title, size=15),
             text((left + width - right) / 2, height - 10, x_label, "middle"),
             text(10, 40, y_label, size=11)]
    for i in range(5):
        value = y_high * i / 4
        _, y = at(x_low, value)
        parts.append(f'<path d="M{left} {y:.1f} H{width - right}" stroke="#ddd"/>')
        parts.append(text(left - 6, y + 4, count(value) if y_high > 20 else f"{value:.2f}", "end"))
    for x in sorted({x for x, _ in points}):
        px, _ = at(x, 0)
        parts.append(text(px, height - bottom + 16, count(x), "middle", 10))
    for i, (label, line) in enumerate(series):
        colour = COLOURS[i % len(COLOURS)]
        path_text = " ".join(f"{'M' if j == 0 else 'L'}{at(*p)[0]:.1f} {at(*p)[1]:.1f}"
                             for j, p in enumerate(line))
        parts.append(f'<path d="{path_text}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{at(*p)[0]:.1f}" cy="{at(*p)[1]:.1f}" r="3" fill="{colour}"/>'
                  for p in line]
        parts.append(text(width - right + 10, top + 14 + 18 * i, label, colour=colour))
    pathlib.Path(path).write_text(svg(width, height, parts))
