"""An audit that was stopped from outside (Ctrl-C, or the SIGTERM of a scheduler): where it was, and how to go on."""

from __future__ import annotations

from collections.abc import Sequence

from reluctant.audit.known import Known
from reluctant.audit.states import State
from reluctant.oracles import Oracle, Wrapper
from reluctant.oracles.transcript import Transcript

__all__ = ["STOPS", "how_to_go_on", "is_recorded", "is_stopped", "left_by_a_stop", "listed"]

GO_ON = "Run the same command again: the transcript goes on where it was stopped, and nothing is paid twice."
STOPS = (State.STOPPED, State.NOT_BEGUN)
KEEP_NEXT_TIME = "No transcript was kept, so it begins anew; with one (--transcript DIR) a stopped audit goes on."


def is_recorded(oracle: Oracle) -> bool:
    """True if answers are kept in a transcript."""
    while isinstance(oracle, Wrapper):
        if isinstance(oracle, Transcript):
            return True
        oracle = oracle.inner
    return False


def how_to_go_on(steps: Sequence[tuple[str, State]], recorded: bool) -> str:
    """Where an audit of these steps (name, how it ended) was cut short, and how it goes on; empty where it was not."""
    at = next((k for k, (_, state) in enumerate(steps) if state is State.STOPPED), None)
    if at is None:
        return ""
    where = f"in step {at + 1} of {len(steps)}, {steps[at][0]}"
    return (
        f"The audit was cut short: it was stopped from outside {where}, and tells what was known by then. "
        f"{GO_ON if recorded else KEEP_NEXT_TIME}"
    )


def is_stopped(known: Known) -> bool:
    """True if the audit did not come to its last step."""
    return State.STOPPED in known.states.values()


def left_by_a_stop(known: Known, steps: Sequence[str]) -> str:
    """Which of these steps a stop broke off, and which it did not let begin; empty where it did neither."""
    broken, never = ([step for step in steps if known.states.get(step) is state] for state in STOPS)
    said = [f"{listed(broken)} {_be(broken)} broken off"] if broken else []
    said += [f"{listed(never)} {_be(never)} not begun"] if never else []
    return f"The audit was stopped: {', '.join(said)}." if said else ""


def listed(steps: Sequence[str]) -> str:
    """Steps in words: a, b and c."""
    *first, last = steps
    return f"{', '.join(first)} and {last}" if first else last


def _be(steps: Sequence[str]) -> str:
    return "was" if len(steps) == 1 else "were"
