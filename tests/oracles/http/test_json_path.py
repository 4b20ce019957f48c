"""Request templates and reply paths: where the rows go and where the answers are."""

from __future__ import annotations

import json

import pytest

from reluctant.errors import InvalidAnswer, InvalidInput
from reluctant.oracles.http.json_endpoint import ReplyPath, RequestTemplate

REPLY = {"a": {"b": [[1, 2], [3, 4]]}, "results": [{"score": 0.5}, {"score": 0.7}], "odd key": 3}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a.b", [[1, 2], [3, 4]]),
        ("a.b[1]", [3, 4]),
        ("$.a.b[-1]", [3, 4]),
        ("a.b[*][0]", [1, 3]),
        ("results[*].score", [0.5, 0.7]),
        ("odd key", 3),
        ("results[*][*]", [[0.5], [0.7]]),
        ("", REPLY),
        ("$", REPLY),
    ],
)
def test_paths_find_answers(path: str, found: object) -> None:
    assert ReplyPath.of(path).find(REPLY) == found


@pytest.mark.parametrize(
    ("path", "said"),
    [("predictions", "the keys a, results, odd key"), ("a.b[7]", "2 items"), ("results.score", "2 items")],
)
def test_a_path_that_ends_says_what_is_there(path: str, said: str) -> None:
    with pytest.raises(InvalidAnswer, match=said):
        ReplyPath.of(path).find(REPLY)


@pytest.mark.parametrize("path", ["a[", "a[x]", "a..b", "]"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput, match=r"^reply: got "):
        ReplyPath.of(path)


@pytest.mark.parametrize("template", ['{"instances": "$rows"}', {"instances": "$rows"}])
def test_rows_take_their_place(template: object) -> None:
    filled = RequestTemplate.of(template).filled(b"[[1.5, 2.0]]")
    assert json.loads(filled) == {"instances": [[1.5, 2.0]]}


def test_one_row_a_request() -> None:
    template = RequestTemplate.of({"data": {"x": "$row"}, "key": 1})
    assert template.single
    assert json.loads(template.filled(b"[1.0]")) == {"data": {"x": [1.0]}, "key": 1}


@pytest.mark.parametrize("template", ["{", "{}", '{"a": "$rows", "b": "$rows"}', '{"a": "$rows", "b": "$row"}', "rows"])
def test_a_bad_template_is_refused(template: str) -> None:
    with pytest.raises(InvalidInput, match=r"^request: got "):
        RequestTemplate.of(template)
