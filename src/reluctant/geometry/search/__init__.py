"""All creases of a piecewise linear function along lines: every open interval of every line in one batch.

Between two pieces one crease is expected where their lines meet. The function is asked just before and just
after: if both answers lie on their pieces the crease is certified, if not there is more between them and the
new samples become pieces of their own. Asking at the meeting point alone would not do, for the values agree
there also when the function leaves the first piece early and joins the second before the meeting point. Nor
would several outputs: the lines of pieces that are not neighbours hardly ever meet, but they do where two
neurons with proportional outputs lie close together.

`starts`: the first samples. `rounds`: what to ask next. `meetings`: where pieces meet, and whether that is certain.
`stretches`: the parts of lines that are still open. `scanning`: rounds until nothing is open.
"""

from reluctant.geometry.search.scanning import scan_lines

__all__ = ["scan_lines"]
