"""The span of a target from its labels alone."""

from reluctant.span.labels.label_span import FromLabels, from_labels

__all__ = ["FromLabels", "from_labels"]
