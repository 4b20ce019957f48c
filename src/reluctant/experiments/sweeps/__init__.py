"""One run of a method on a planted network, with the truth beside it: shared by experiments and benchmarks."""
