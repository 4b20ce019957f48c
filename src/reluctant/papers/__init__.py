"""The papers: their algorithms and laws by name, to be read beside the print, and their experiments, run again.

No method of the library uses them. `exact`, `span_algorithms`, `learning_algorithms` and `random_networks` hold one
paper each; `experiments` has the figures, tables and theorems that `reluctant reproduce` measures.
"""

__all__ = ()
