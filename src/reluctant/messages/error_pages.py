"""Causes and fixes of each error, for the page of messages."""

from __future__ import annotations

from collections.abc import Mapping

ERRORS: Mapping[str, str] = {
    "invalid-input": (
        "An argument is wrong. The message gives the argument, what was got, what was expected. Nothing was sent "
        "to the target."
    ),
    "invalid-rows": (
        "Rows for a query have the wrong shape or type, or hold NaN or inf. Rows are an (n, d) array of numbers "
        "with n ≥ 1; one point is `x[None, :]`."
    ),
    "invalid-weights": (
        "Weights or biases of a `ReLUNetwork` have the wrong shape or type, or hold NaN or inf. Weights are (out, in), "
        "biases (out,)."
    ),
    "outside-domain": (
        "A row leaves the domain the target was opened with. Clip it, or open the target with a larger `domain`. "
        "Nothing was sent."
    ),
    "no-gradient": (
        "Around this input the target does not change, or not by more than its noise or rounding: there is no "
        "gradient to compare others with. Take another input. The target was asked to find that out."
    ),
    "unknown-target": (
        "No adapter knows how to open this target, or nobody answers there. A target is a callable, a path to "
        "`.onnx` or `.npz`, a torch module, a fitted scikit-learn model, a `ReLUNetwork`, `module:attribute`, or "
        "the address of a served model (`http://host:port/v2/models/NAME`). Where a server finds no model of that "
        "name, its own words are in the message, and the names of those it has if it lists them."
    ),
    "unsafe-file": (
        "The file can run code when it is loaded. Pickle, joblib and torch files run whatever their author put "
        "in. If you made the file, pass `trust_code=True`; better, export the model to ONNX."
    ),
    "unsupported-model": (
        "The model file cannot be read, or not in the way that was asked for. `ReLUNetwork.load` reads dense "
        "layers, ReLUs, reshapes, normalisation constants and a final softmax, sigmoid or tanh; the message names "
        "the node that does not fit. Any model that onnxruntime runs can still be opened as an oracle."
    ),
    "unusable-engine": (
        "The engine (`engine=`) cannot do the work. Nobody answers at the address, there are no workers, or this "
        "library is missing there or has another version. Or the target cannot go to the workers: pickle cannot "
        "carry it, it keeps its own account, or every worker would draw the same noise. Nothing "
        "was asked. Start a scheduler and workers with the same version of this library; name a target that "
        "cannot be sent as `module:attribute`, or save it to a file. [A cluster](scale.md) says how. In a sweep: "
        "a piece cannot be sent, workers cannot open it, or it was given up after its workers died."
    ),
    "missing-dependency": ("An optional library is not installed. Run the pip line in the message."),
    "target-error": ("The target misbehaved. See the more exact errors below."),
    "target-unavailable": (
        "The target raised an exception or dropped the call, or the cluster that holds it was lost. The cause is "
        "in the message. If it happens now and then, open it with `retries=3`; with a transcript nothing that was "
        "answered is lost. Where calls were repeated the message says how often, and how large the numbers were "
        "beside those that were answered. If all that failed are larger, it names a range that was answered "
        "(`domain=(low, high)`): numbers between these bounds were, not every combination of them."
    ),
    "target-timeout": (
        "The target did not answer within `timeout` seconds. Raise the timeout, or check that the target is "
        "alive. The hung call is left behind in a thread."
    ),
    "target-busy": (
        "The target took nothing: it answered 429 or 503, or could not be reached. Such rows are not counted as "
        "sent. Requests are repeated with growing pauses, and not before the time the server names "
        "(`Retry-After`). This error means that all `retries` failed, or that the server asks for more than "
        "ten minutes. Ask more slowly (`rate=`, `connections=1`), and give a transcript: what was answered is "
        "kept."
    ),
    "target-refused": (
        "The target refused the request and would refuse it again: wrong credentials (401, 403; name an "
        "environment variable with `auth_env=`), an input it does not take, a path that is not there. Its own "
        "words are in the message; where smaller inputs were answered, so is a range that was (`domain=`). Such "
        "rows are not counted as sent."
    ),
    "batch-refused": (
        "The target refused this many rows in one request. Fewer are tried by themselves, down to one; what it "
        "takes is remembered. Give `batch=` to say it beforehand."
    ),
    "target-changed": (
        "Rows that were answered before are answered otherwise now, or the server names another version of the "
        "model. Answers of two models do not go together: start again with a new transcript folder."
    ),
    "invalid-answer": (
        "The answer has the wrong shape, type or number of rows. A target must answer every row of a batch with "
        "the same number of outputs, as numbers; class names are to be numbered."
    ),
    "non-finite-answer": (
        "The target answered NaN or inf. The rows and answers are on the error (`error.rows`, `error.answers`). "
        "Give the `domain` in which the target is defined, or avoid these rows. With a link, a probability of "
        "exactly 0 or 1 does this."
    ),
    "non-finite-gradient": (
        "The target answered numbers, and NaN or inf for their gradients, as it may where a function bends. The rows "
        "are on the error (`error.rows`). Let gradients have one-sided values there, as autograd does. `extract`, "
        "`recover_span` and `flip_sign` go on from values alone."
    ),
    "invalid-gradient": (
        "The gradients beside the answers have the wrong shape or type (`error.got`, `error.expected`). The order is "
        "rows, outputs, inputs; (rows, inputs) will do for one output, which `output=` names. `extract`, "
        "`recover_span` and `flip_sign` go on from values alone."
    ),
    "link-mismatch": (
        "The answers contradict the link. They are values or labels instead of probabilities, exceed 1 behind a "
        "tanh, or sum to one behind a sigmoid. "
        'Give the link that the target has (`link="softmax"`, `"sigmoid"`, `"tanh"`), or none if it answers '
        "values or labels. Percentages need `percent=True` besides."
    ),
    "budget-exhausted": (
        "The next rows would pass the budget. They were not sent. `error.spent` says what was. Raise the budget "
        "and run again on the same transcript: nothing is paid twice."
    ),
    "time-exhausted": (
        "The processor time given is over: `seconds` of a call, or the share of one part of an audit. What was found "
        "until then is given, with the outcome `out-of-budget` and the diagnosis `out-of-time`."
    ),
    "transcript-error": (
        "The transcript folder cannot be written. Free space or fix permissions, then run again: what was "
        "answered is kept."
    ),
    "transcript-mismatch": (
        "The transcript was made for another target, seed or format. Mixing them would answer questions with "
        "somebody else's answers. Open the target and seed it was made for, or use a new folder."
    ),
    "transcript-corrupt": (
        "The transcript is damaged in the middle. A torn last block (from a kill) is cut off silently and costs "
        "nothing; this is something else, such as a failing disk. Restore a copy or start a new folder."
    ),
    "transcript-in-use": ("Another process is writing to the transcript. Wait for it, or use another folder."),
    "not-recovered": (
        "`result.raise_for_status()` was called on a result that is not ok. The whole result, with the partial "
        "network and the evidence, is on the error (`error.result`)."
    ),
    "error": (
        "Base of all errors. Catch `reluctant.ReluctantError` to catch everything this library raises on purpose."
    ),
}
