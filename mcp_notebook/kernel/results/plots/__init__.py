"""Plots of any library as pictures, or as their specification if nothing can draw them.

matplotlib draws in the kernel, by IPython's formatters (`matplotlib_figures`). The plots of other
libraries are found in what they display (`detect`), and drawn in another process, with a time limit
(`renderer`, which runs the program `renderer_process`): plotly and Vega by `draw`, SVG by `svg`.
`spec` and `bokeh` describe plots that are not drawn.

Face, used by `results` only:

- `detect`: the `Plot` in a display or an object.
- `matplotlib_figures`: figures as MIME bundles; the figures behind a value.
- `figure_text`: a line about a figure, from its artists.
- `svg`: SVG as PNG, or as its texts.
- `spec.compact_json`: any JSON in a limited number of characters.
- `renderer.NotDrawn`: why there is no picture.

Threads: everything runs on the thread of the call, which waits for the drawing process.

Left to other rooms: the blocks of a plot (`results.displays`), the size of a picture
(`results.blocks.images`), and the figures that pyplot has open (`calls.pyplot`). No plotting
library is imported in the kernel: they are looked up in `sys.modules`.
"""
