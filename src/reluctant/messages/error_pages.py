"""Causes and fixes of each error, for the page of messages."""

from __future__ import annotations

from collections.abc import Mapping

ERRORS: Mapping[str, str] = {
    "invalid-input": (
        "An argument is wrong. The message states the argument, what was got and what was expected. No query was sent."
    ),
    "invalid-rows": (
        "Rows for a query have the wrong shape or type, or hold NaN or inf. Rows are an (n, d) array of numbers "
        "with n ≥ 1; one point is `x[None, :]`."
    ),
    "invalid-weights": (
        "Weights or biases of a `ReLUNetwork` have the wrong shape or type, or hold NaN or inf. Weights are (out, "
        "in), biases (out,)."
    ),
    "outside-domain": (
        "A row lies outside the domain of the target. Clip the row, or open the target with a larger `domain`. No "
        "query was sent."
    ),
    "no-gradient": (
        "Around this input the target does not change by more than its noise or rounding, so there is no gradient "
        "to compare. Take another input. Finding this out cost some queries."
    ),
    "unknown-target": (
        "No adapter can open this target, or nobody answers at its address. A target is a callable, a path to "
        "`.onnx` or `.npz`, a torch module, a fitted scikit-learn model, a `ReLUNetwork`, `module:attribute`, or "
        "the address of a served model (`http://host:port/v2/models/NAME`). If the server has no model of that "
        "name, the message quotes it and lists the names that it offers."
    ),
    "unsafe-file": (
        "The file can run code when it is loaded: pickle, joblib and torch files run whatever their author put in. "
        "If you made the file, pass `trust_code=True`. Better, export the model to ONNX."
    ),
    "unsupported-model": (
        "The model file cannot be read. `ReLUNetwork.load` reads dense layers, ReLUs, reshapes, normalisation "
        "constants and a final softmax, sigmoid or tanh; the message names the node that does not fit. You can "
        "still open any model that onnxruntime runs as an oracle."
    ),
    "unusable-engine": (
        "The engine (`engine=`) cannot do the work: nobody answers at the address, there are no workers, or they "
        "lack this library in this version. Or the target cannot go to the workers: pickle cannot carry it, it "
        "keeps its own account, or every worker would draw the same noise. No query was sent. Start a scheduler "
        "and workers with the same version of this library. Name the target as `module:attribute`, or save it to a "
        "file. [A cluster](scale.md) has the steps."
    ),
    "missing-dependency": ("An optional library is not installed. Run the pip line in the message."),
    "target-error": ("The target failed. The errors below say how."),
    "target-unavailable": (
        "The target raised an exception or dropped the call, or its cluster was lost. The message has the cause. "
        "If the fault comes and goes, open the target with `retries=3`; a transcript keeps every answer. After "
        "repeated calls, the message compares the size of failed and answered numbers. If all that failed are "
        "larger, it names a range that was answered (`domain=(low, high)`)."
    ),
    "target-timeout": (
        "The target did not answer within `timeout` seconds. Raise the timeout, or check that the target is alive. "
        "The hung call stays behind in a thread."
    ),
    "target-busy": (
        "The target accepted nothing: it answered 429 or 503, or could not be reached. These rows do not count as "
        "sent. reluctant repeated the request with growing pauses, and waited as long as the server asked "
        "(`Retry-After`). All `retries` failed, or the server asked for more than ten minutes. Lower the load "
        "(`rate=`, `connections=1`), and use a transcript."
    ),
    "target-refused": (
        "The target refused the request for good: wrong credentials (401, 403; name an environment variable with "
        "`auth_env=`), an input that it does not accept, a path that does not exist. The message quotes it, and "
        "names an answered range (`domain=`) if smaller inputs were answered. These rows do not count as sent."
    ),
    "batch-refused": (
        "The target refused this many rows in one request. reluctant tries fewer, down to one, and remembers the "
        "number that works. `batch=` sets it."
    ),
    "target-changed": (
        "The target answers old rows differently, or the server names another version of the model. Answers of two "
        "models do not mix: start again with a new transcript folder."
    ),
    "invalid-answer": (
        "The answer has the wrong shape, type or number of rows. A target must answer every row of a batch with "
        "the same number of outputs, as numbers. Replace class names by numbers."
    ),
    "non-finite-answer": (
        "The target answered NaN or inf. The error has the rows and answers (`error.rows`, `error.answers`). Give "
        "the `domain` in which the target is defined. With a link, a probability of exactly 0 or 1 causes this "
        "error."
    ),
    "non-finite-gradient": (
        "The target answered numbers, but NaN or inf for their gradients, as it may where a function bends. The "
        "error has the rows (`error.rows`). Use one-sided gradients there, as autograd does. `extract`, "
        "`recover_span` and `flip_sign` continue with values alone."
    ),
    "invalid-gradient": (
        "The gradients beside the answers have the wrong shape or type (`error.got`, `error.expected`). The order "
        "is rows, outputs, inputs; (rows, inputs) suffices for one output, which `output=` names. `extract`, "
        "`recover_span` and `flip_sign` continue with values alone."
    ),
    "link-mismatch": (
        "The answers contradict the link. They are values or labels instead of probabilities, exceed 1 behind a "
        'tanh, or sum to one behind a sigmoid. Give the link that the target has (`link="softmax"`, `"sigmoid"`, '
        '`"tanh"`), or none if it answers values or labels. Percentages need `percent=True` besides.'
    ),
    "budget-exhausted": (
        "The next rows would exceed the budget, so they were not sent. `error.spent` has the rows so far. Raise "
        "the budget and run again on the same transcript: nothing is paid twice."
    ),
    "time-exhausted": (
        "The processor time is over: `seconds` of a call, or the share of a part of an audit. The result has the "
        "findings so far, the outcome `out-of-budget` and the diagnosis `out-of-time`."
    ),
    "transcript-error": (
        "The transcript folder cannot be written. Free space or fix permissions, then run again: the folder keeps "
        "every answer so far."
    ),
    "transcript-mismatch": (
        "The transcript belongs to another target, seed or format. Open that target with that seed, or use a new "
        "folder."
    ),
    "transcript-corrupt": (
        "The transcript is damaged in the middle, for example by a failing disk. (A torn last block, from a kill, "
        "is harmless.) Restore a copy or start a new folder."
    ),
    "transcript-in-use": ("Another process is writing to the transcript. Wait for it, or use another folder."),
    "not-recovered": (
        "`result.raise_for_status()` found a result that is not ok. The error has the whole result, with the "
        "partial network and the evidence (`error.result`)."
    ),
    "error": (
        "Base of all errors. Catch `reluctant.ReluctantError` to catch everything this library raises on purpose."
    ),
}
