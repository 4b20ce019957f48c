"""Messages: diagnoses as data, and the one catalogue of their text."""

from reluctant.messages.diagnosis import Diagnosis, Notes, Remedy, as_python

__all__ = ["Diagnosis", "Notes", "Remedy", "as_python"]
