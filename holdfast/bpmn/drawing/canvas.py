"""SVG, written part by part: nothing but shapes and texts, each text escaped, no reference to anything outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.bpmn.drawing.geometry import Box, Point, format_number, format_points, make_path
from holdfast.bpmn.drawing.texts import FONT_SIZE, LINE_HEIGHT, escape

INK: Final = "#22242a"
PAPER: Final = "#ffffff"
FONT: Final = "Arial, Helvetica, sans-serif"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pen:
    """How something is drawn: its line and its area."""

    stroke: str = INK
    fill: str = "none"
    width: float = 1.5
    dash: str = ""
    cap: str = ""

    def write(self) -> str:
        """The attributes of an SVG element."""
        parts = [f'fill="{self.fill}" stroke="{self.stroke}"']
        if self.stroke != "none":
            parts.append(f'stroke-width="{format_number(self.width)}"')
            if self.dash:
                parts.append(f'stroke-dasharray="{self.dash}"')
            if self.cap:
                parts.append(f'stroke-linecap="{self.cap}" stroke-linejoin="{self.cap}"')
        return " ".join(parts)


class Canvas:
    """Collects the parts of a drawing in the order in which they cover each other."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def rectangle(self, box: Box, pen: Pen, radius: float = 0.0) -> None:
        """Draw a rectangle, with round corners if there is a radius."""
        round_corners = f' rx="{format_number(radius)}"' if radius else ""
        x, y, width, height = map(format_number, box)
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}"{round_corners} {pen.write()}/>')

    def circle(self, center: Point, radius: float, pen: Pen) -> None:
        """Draw a circle around a point."""
        x, y, size = format_number(center[0]), format_number(center[1]), format_number(max(0.0, radius))
        self.parts.append(f'<circle cx="{x}" cy="{y}" r="{size}" {pen.write()}/>')

    def polygon(self, points: Iterable[Point], pen: Pen) -> None:
        """Draw a closed line through some points."""
        self.parts.append(f'<polygon points="{format_points(points)}" {pen.write()}/>')

    def line(self, points: Sequence[Point], pen: Pen, radius: float = 5.0) -> None:
        """Draw a line through points, with round corners."""
        self.parts.append(f'<path d="{make_path(points, radius)}" {pen.write()}/>')

    def path(self, data: str, pen: Pen) -> None:
        """A path of SVG; its data must come from here, and never from a file."""
        self.parts.append(f'<path d="{data}" {pen.write()}/>')

    def text(
        self, lines: Sequence[str], x: float, y: float, *, anchor: str = "middle", size: float = FONT_SIZE, color: str = INK,
        weight: str = "", turned: bool = False, halo: bool = False,
    ) -> None:  # fmt: skip
        """Lines of text below each other. `y` is where the first begins; with `turned`, x and y are the middle of all."""
        if not lines:
            return
        step = LINE_HEIGHT * size / FONT_SIZE
        if turned:
            turn = f' transform="translate({format_number(x)} {format_number(y)}) rotate(-90)"'
            x, y = 0.0, -step * len(lines) / 2
        else:
            turn = ""
        bold = f' font-weight="{weight}"' if weight else ""
        glow = f' paint-order="stroke" stroke="{PAPER}" stroke-width="3" stroke-linejoin="round"' if halo else ""
        sized = f' font-size="{format_number(size)}"' if size != FONT_SIZE else ""
        spans = "".join(
            f'<tspan x="{format_number(x)}" y="{format_number(y + step * number + size * 0.9)}">{escape(line)}</tspan>'
            for number, line in enumerate(lines)
        )
        self.parts.append(f'<text text-anchor="{anchor}" fill="{color}"{sized}{bold}{glow}{turn}>{spans}</text>')

    def open_group(self, attributes: dict[str, str], title: str = "") -> None:
        """Begin a group of parts that belong to one element."""
        written = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
        self.parts.append(f"<g{written}>" + (f"<title>{escape(title)}</title>" if title else ""))

    def move(self, x: float, y: float, scale: float = 1.0) -> None:
        """Begin a group whose origin is elsewhere."""
        sized = f" scale({format_number(scale)})" if scale != 1 else ""
        self.parts.append(f'<g transform="translate({format_number(x)} {format_number(y)}){sized}">')

    def close_group(self) -> None:
        """End the group that was begun last."""
        self.parts.append("</g>")

    def finish(self, area: Box, title: str, description: str) -> str:
        """The whole file, on a white background, so that it can be read on a dark page too."""
        x, y, width, height = map(format_number, area)
        return "\n".join(
            [
                (
                    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{x} {y} {width} {height}" '
                    f'width="{width}" height="{height}" '
                    f'role="img" aria-label="{escape(title)}" font-family="{FONT}" font-size="{format_number(FONT_SIZE)}">'
                ),
                f"<title>{escape(title)}</title>",
                f"<desc>{escape(description)}</desc>",
                f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{PAPER}"/>',
                *self.parts,
                "</svg>\n",
            ]
        )
