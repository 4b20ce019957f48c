"""Fits: one damped least-squares loop, and the fit of a whole network to answers that were paid for."""
