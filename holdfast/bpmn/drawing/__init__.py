"""Draws BPMN files as SVG: as their diagrams say, with a layout where they have none, and with an execution as overlay.

    svg = draw(reading.definitions, overlay=Overlay(active={"charge": 1}))

The way from a file to its drawing: `contents` lists what can be drawn, `arranging` finds the place of each element (from the
file, or by `layout`, which is `graphs`, `ordering`, `rows` and `channels` for each container, and `connecting` for lines
between places that are given), `svg` draws it with `shapes`, `symbols`, `lines` and `badges` on a `canvas`.
"""

from holdfast.bpmn.drawing.overlays import Overlay
from holdfast.bpmn.drawing.svg import draw

__all__ = ["Overlay", "draw"]
