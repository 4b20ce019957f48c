"""Units of inputs: verbs work where the inputs are, column by column, and answer in the user's own units."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import InvalidInput
from reluctant.oracles.input_units import InputUnits, Scaled, in_own_units
from reluctant.oracles.open import in_units
from reluctant.testing import planted

CENTRE = np.array([0.0, 2000.0, -3e5, 0.05, 7.0, 1e-4])
SCALE = np.array([1.0, 5.0, 4e4, 0.01, 100.0, 3e-5])
NETWORK = planted((6, 8, 1), 3)  # a function of z = (x - centre) / scale


def rows(n, seed=0):
    return CENTRE + SCALE * np.random.default_rng(seed).standard_normal((n, 6))


def target(x):
    return NETWORK((x - CENTRE) / SCALE)


def largest_error(network, at):
    return np.abs(network(at) - target(at)).max() / target(at).std()


def test_a_network_on_raw_columns_is_recovered_in_their_units():
    found = rl.extract(target, dim=6, inputs=rows(500), rng=0)
    assert found.ok
    assert found.network.widths == (6, 8, 1)
    assert largest_error(found.network, rows(1000, seed=1)) < 1e-9
    assert any(group.name == "given inputs" for group in found.evidence["verification"].groups)


def test_units_cost_only_the_given_inputs_in_verification():
    plain = rl.extract(NETWORK, rng=0)
    found = rl.extract(target, dim=6, inputs=rows(100_000), rng=0)
    assert plain.ok
    assert abs(found.queries - plain.queries) <= 64


def test_verify_looks_where_the_inputs_are():
    right = InputUnits(CENTRE, SCALE).network(NETWORK)
    biases = right.biases
    biases[-1] = biases[-1] + 1e-3
    wrong = rl.ReLUNetwork(right.weights, biases)
    with rl.open_oracle(target, dim=6, inputs=rows(500)) as oracle:
        assert rl.verify(oracle, right).ok
        assert not rl.verify(oracle, wrong).ok


def test_the_span_is_that_of_the_users_own_inputs():
    narrow = planted((6, 3, 1), 5)
    with rl.open_oracle(lambda x: narrow((x - CENTRE) / SCALE), dim=6, inputs=rows(500)) as oracle:
        found = rl.recover_span(oracle, rng=0)
    true = rl.Subspace.spanned_by(narrow.weights[0] / SCALE)
    assert found.rank == 3
    assert found.subspace.distance(true) < 1e-6


def test_learn_gives_a_network_of_the_users_own_inputs():
    found = rl.learn(target, dim=6, inputs=rows(500), rng=0)
    assert found.ok
    assert largest_error(found.network, rows(1000, seed=1)) < 1e-6


def test_a_box_whose_sides_differ_gives_units_too():
    found = rl.extract(target, dim=6, domain=(CENTRE - 3 * SCALE, CENTRE + 3 * SCALE), rng=0)
    assert found.ok
    inside = CENTRE + SCALE * np.random.default_rng(2).uniform(-3, 3, (1000, 6))
    assert largest_error(found.network, inside) < 1e-8


def test_a_skip_is_carried_over():
    network = rl.ReLUNetwork(NETWORK.weights, NETWORK.biases, skip=np.arange(6.0)[None])
    units, x = InputUnits(CENTRE, SCALE), rows(50)
    assert np.allclose(units.network(network)(x), network(units.reduced(x)), rtol=1e-9)
    assert np.allclose(units.reduced_network(units.network(network))(x / SCALE), network(x / SCALE), rtol=1e-6)


def test_inputs_of_one_scale_around_0_are_asked_as_they_are():
    plain = np.random.default_rng(0).standard_normal((200, 6))
    with rl.open_oracle(NETWORK, inputs=plain) as oracle:
        assert InputUnits.of(oracle.facts).are_plain


def test_a_column_that_never_varies_gets_a_scale_of_the_others():
    given = rows(200)
    given[:, 2] = 4.0
    with rl.open_oracle(target, dim=6, inputs=given) as oracle:
        scale = InputUnits.of(oracle.facts).scale
        assert scale[2] == np.median(np.delete(scale, 2))


def test_scaled_rows_stay_inside_the_bounds():
    domain = rl.Domain(CENTRE - SCALE / 3, CENTRE + SCALE / 3)
    asked = []

    def listening(x):
        asked.append(x)
        return target(x)

    with rl.open_oracle(listening, dim=6, domain=domain) as oracle:
        scaled = Scaled(oracle.inner, InputUnits.of(oracle.facts), domain, None)
        scaled.query(np.broadcast_to(scaled.facts.domain.high, (1, 6)))
        scaled.query(np.broadcast_to(scaled.facts.domain.low, (1, 6)))
    assert all(domain.contains(x) for x in asked)


@pytest.mark.parametrize(
    ("inputs", "part"),
    [
        ([["a", "b", "c", "d", "e", "f"]] * 10, "Encode texts"),
        (np.ones((10, 5)), "shape"),
        (np.ones((3, 6)), "n >= 8"),
        (np.where(np.eye(10, 6) > 0, np.nan, 1.0), "column 0"),
        (np.ones((10, 6)), "rows that differ"),
    ],
)
def test_inputs_that_are_no_rows_are_refused_by_name(inputs, part):
    with pytest.raises(InvalidInput, match=part) as refused:
        rl.open_oracle(target, dim=6, inputs=inputs)
    assert refused.value.argument == "inputs"


def test_inputs_outside_the_domain_are_refused():
    with pytest.raises(InvalidInput, match="outside the domain"):
        rl.open_oracle(target, dim=6, domain=(-1, 1), inputs=rows(50))


def test_pixels_of_images_share_one_scale():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (300, 64)).astype(float)
    images[:, :10] *= rng.random((300, 10)) < 0.02  # corners that are seldom bright
    with rl.open_oracle(planted((64, 3, 1), 0), inputs=images) as oracle:
        assert len(set(InputUnits.of(oracle.facts).scale)) == 1


def test_units_show_through_plain_ones_around_them():
    """An audit scales the target; its steps then find inputs of one scale around 0."""
    samples = 50 + 20 * np.random.default_rng(0).standard_normal((100, 3))
    outer, units = in_units(rl.open_oracle(lambda x: x.sum(axis=1), dim=3), samples)
    inner, plain = in_units(outer, units.reduced(samples))
    assert plain.are_plain
    assert in_own_units(inner)


def test_a_box_is_named_in_its_units():
    def chance(x):
        return 1 / (1 + np.exp(-target(x)))

    found = rl.extract(chance, dim=6, link="sigmoid", inputs=rows(500), rng=0)
    assert found.ok
    assert found.evidence["inside"].in_units
    assert largest_error(found.network, rows(1000, seed=1)) < 1e-6


@pytest.mark.parametrize("given", ["to the audit", "on opening"])
def test_an_audit_works_in_units_of_the_inputs(given, tmp_path):
    honest = rows(300)
    raw = InputUnits(CENTRE, SCALE).network(NETWORK)
    raw.save(tmp_path / "raw.npz")
    with rl.open_oracle(tmp_path / "raw.npz", inputs=None if given == "to the audit" else honest) as oracle:
        found = rl.audit(
            oracle, budget=5_000, rng=0, inputs=honest if given == "to the audit" else None, file=tmp_path / "raw.npz",
            steps=["health", "span", "extraction", "truth"],
        )  # fmt: skip
    assert found.verdict.level == "exact"
    assert found.record.truth.neurons_found == 8


def test_flips_of_an_audit_are_recorded_as_the_targets_own_inputs():
    honest = rows(300)
    found = rl.audit(target, dim=6, budget=5_000, rng=0, inputs=honest, steps=["health", "extraction", "flip"])
    assert np.abs((np.array(found.record.flip.start) - CENTRE) / SCALE).max() < 6
    assert "input-units" in [limit.slug for limit in found.record.limits]


def test_an_audit_of_labels_without_a_look_at_them_has_a_record():
    found = rl.audit(lambda x: (NETWORK(x)[:, 0] > 0).astype(int), dim=6, budget=60_000, rng=0, steps=["extraction"])
    assert found.record.extraction is not None


def test_the_span_takes_units_from_inputs_of_its_own():
    narrow = planted((6, 3, 1), 5)
    with rl.open_oracle(lambda x: narrow((x - CENTRE) / SCALE), dim=6) as oracle:
        found = rl.recover_span(oracle, rng=0, inputs=rows(500))
    assert found.rank == 3
    assert found.subspace.distance(rl.Subspace.spanned_by(narrow.weights[0] / SCALE)) < 1e-6


def test_a_flip_steps_in_units_of_the_inputs():
    start = rows(1, seed=4)[0]
    above = float(target(start[None])[0, 0]) - 0.1

    def shifted(x):
        return target(x) - above

    found = rl.flip_sign(shifted, start, dim=6, inputs=rows(500))
    assert found.ok
    assert shifted(found.x[None]) < 0 < shifted(start[None])
    assert np.array_equal(found.start, start)
    assert found.size == pytest.approx(np.linalg.norm((found.x - start) / found.units.scale))
    assert found.size < 10  # deviations of the columns; in the numbers themselves it is thousands


def test_linearity_is_looked_at_in_units_of_the_inputs():
    start = rows(20, seed=4)[3]
    found = rl.local_linearity(target, start, dim=6, inputs=rows(500))
    scaled = rl.local_linearity(lambda z: target(CENTRE + SCALE * z), (start - CENTRE) / SCALE, dim=6)
    assert np.allclose(found.random, scaled.random, atol=0.3)


def test_a_student_is_trained_in_units_of_the_inputs():
    found = rl.train_student(target, dim=6, inputs=rows(3000), rows=2500, steps=300, hidden=(16,), rng=0)
    assert found.evidence["accuracy"].error < 0.3
    at = rows(500, seed=2)
    assert np.mean((found.network(at) - target(at)) ** 2) < 0.4 * target(at).var()
