"""Subspaces: projections, angles, null spaces, files."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reluctant as rl
from reluctant.errors import InvalidInput, UnsupportedModel


@st.composite
def subspaces(draw: st.DrawFn, dim: int | None = None) -> rl.Subspace:
    d = draw(st.integers(1, 12)) if dim is None else dim
    rank, seed = draw(st.integers(0, d)), draw(st.integers(0, 2**32 - 1))
    return rl.Subspace.spanned_by(np.random.default_rng(seed).standard_normal((rank, d)))


def rows(subspace: rl.Subspace, n: int = 5) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((n, subspace.dim))


@given(subspaces())
def test_parts_add_up_and_are_orthogonal(subspace):
    x = rows(subspace)
    inside, outside = subspace.project(x), subspace.reject(x)
    np.testing.assert_allclose(inside + outside, x, atol=1e-12)
    np.testing.assert_allclose((inside * outside).sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(subspace.project(inside), inside, atol=1e-12)
    np.testing.assert_allclose(x @ subspace.projector, inside, atol=1e-12)


@given(subspaces())
def test_the_null_space_is_everything_else(subspace):
    null = subspace.null_space
    assert subspace.rank + null.rank == subspace.dim
    np.testing.assert_allclose(subspace.basis @ null.basis.T, 0, atol=1e-12)
    assert null.null_space.distance(subspace) < 1e-12
    assert subspace.invisible_share == pytest.approx(null.rank / subspace.dim)


@given(subspaces(dim=7), subspaces(dim=7))
def test_angles_and_distance_are_symmetric(one, other):
    np.testing.assert_allclose(one.angles(other), other.angles(one), atol=1e-12)
    assert one.distance(other) == pytest.approx(other.distance(one), abs=1e-12)
    assert one.distance(one) < 1e-14
    assert len(one.angles(other)) == min(one.rank, other.rank)


@given(st.floats(1e-14, 1.5))
def test_a_known_angle(angle):
    one = rl.Subspace.spanned_by([[1.0, 0, 0]])
    other = rl.Subspace.spanned_by([[np.cos(angle), np.sin(angle), 0]])
    np.testing.assert_allclose(one.angles(other), [angle], rtol=1e-7, atol=1e-15)
    np.testing.assert_allclose(one.distance(other), np.sin(angle), rtol=1e-7, atol=1e-15)


@given(subspaces())
def test_saved_and_loaded_is_the_same(tmp_path_factory, subspace):
    path = tmp_path_factory.mktemp("span") / "span.npz"
    subspace.save(path)
    np.testing.assert_array_equal(rl.Subspace.load(path).basis, subspace.basis)


@given(subspaces(), st.integers(0, 2**32 - 1))
def test_another_basis_of_the_same_span_is_at_distance_zero(subspace, seed):
    mix = np.random.default_rng(seed).standard_normal((subspace.rank + 2, subspace.rank))
    again = rl.Subspace.spanned_by(mix @ subspace.basis)
    assert again.rank <= subspace.rank
    if again.rank == subspace.rank:
        assert again.distance(subspace) < 1e-6


def test_visible_share_of_zero_is_zero():
    subspace = rl.Subspace(np.eye(3)[:1])
    np.testing.assert_allclose(subspace.visible_share([[0.0, 0, 0], [3.0, 4.0, 0]]), [0, 9 / 25])


def test_the_basis_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        rl.Subspace(np.eye(3)[:2]).basis[0, 0] = 2


def test_equal_rows_are_equal_subspaces():
    one, other = rl.Subspace(np.eye(3)[:2]), rl.Subspace(np.eye(3)[:2])
    assert one == other
    assert hash(one) == hash(other)
    assert one != rl.Subspace(np.eye(3)[1:])
    assert one != "span"
    spans = [rl.Span(rl.Outcome.SPAN_RECOVERED, one, {}) for _ in range(2)]
    assert spans[0] == spans[0]
    assert spans[0] != spans[1]


@pytest.mark.parametrize("name", ["null_basis", "projector"])
def test_what_is_kept_cannot_be_written_to(name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(rl.Subspace(np.eye(3)[:2]), name)[0, 0] = 2


@pytest.mark.parametrize("basis", [np.ones((2, 3)), np.eye(3)[0], np.eye(3)[[0, 1, 2, 0]], np.full((1, 3), np.nan)])
def test_a_basis_must_be_orthonormal_rows(basis):
    with pytest.raises(InvalidInput, match="basis"):
        rl.Subspace(basis)


def test_subspaces_of_different_spaces_are_refused():
    with pytest.raises(InvalidInput, match="other: got 4 coordinates, expected 3"):
        rl.Subspace(np.eye(3)[:1]).angles(rl.Subspace(np.eye(4)[:1]))


def test_files_that_are_none(tmp_path):
    with pytest.raises(InvalidInput, match="existing file"):
        rl.Subspace.load(tmp_path / "none.npz")
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(UnsupportedModel, match=r"Subspace\.save"):
        rl.Subspace.load(tmp_path / "bad.npz")
    np.savez(tmp_path / "new.npz", format=np.array(99), basis=np.eye(2))
    with pytest.raises(UnsupportedModel, match="format 99"):
        rl.Subspace.load(tmp_path / "new.npz")
    with pytest.raises(InvalidInput, match=r"\.npz"):
        rl.Subspace(np.eye(2)).save(tmp_path / "span.txt")
