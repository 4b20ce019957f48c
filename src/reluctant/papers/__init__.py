"""The papers: their algorithms and laws, one module a paper, and their experiments, run again.

No method of the library uses them. `exact`, `span_algorithms`, `learning_algorithms` and `random_networks` hold one
paper each; `experiments` has the figures, tables and theorems that `reluctant reproduce` measures.
"""

__all__ = ()
