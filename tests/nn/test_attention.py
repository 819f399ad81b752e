"""Attention, however it is computed, is attention."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alma.nn.attention import Attention, MultiHead, masked_softmax

QUERIES, INPUTS, WIDTH, HEADS, RELATIONS = 3, 5, 8, 2, 4


def situation(masks=()):
    keys = jax.random.split(jax.random.key(0), 3)
    inputs = jax.random.normal(keys[0], (*[1 for _ in masks], INPUTS, 6))
    relations = jax.random.normal(keys[1], (*[1 for _ in masks], QUERIES, INPUTS, RELATIONS))
    attends = jax.random.bernoulli(keys[2], 0.6, (*masks, QUERIES, INPUTS))
    return inputs, attends, relations


def by_the_book(params, inputs, attends, relations):
    """Keys and values of every input, one head, query and input after another."""
    kernel = {name: np.asarray(params[name]["kernel"], np.float64) for name in params}
    inputs, relations = np.asarray(inputs, np.float64), np.asarray(relations, np.float64)
    size = WIDTH // HEADS
    rows = []
    for q in range(QUERIES):
        row = np.zeros(WIDTH)
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            seen = [e for e in range(INPUTS) if attends[q, e]]
            near = relations[q]
            keys = [inputs[e] @ kernel["key"][:, part] + near[e] @ kernel["key_relation"][:, part] for e in seen]
            values = [inputs[e] @ kernel["value"][:, part] + near[e] @ kernel["value_relation"][:, part] for e in seen]
            logits = np.asarray([inputs[q] @ kernel["query"][:, part] @ key / size**0.5 for key in keys])
            weights = np.exp(logits) / np.sum(np.exp(logits))
            row[part] = sum(weight * value for weight, value in zip(weights, values, strict=True))
        rows.append(row @ kernel["output"] + np.asarray(params["output"]["bias"]))
    return np.stack(rows)


def test_attention_by_the_book():
    inputs, attends, relations = situation()
    network = MultiHead(WIDTH, HEADS)
    params = network.init(jax.random.key(1), inputs, attends, relations)
    expected = by_the_book(params["params"], inputs, attends, relations)
    np.testing.assert_allclose(network.apply(params, inputs, attends, relations), expected, atol=1e-5)


def test_a_last_layer_is_a_layer_behind_the_output():
    """Composing it with the layers before it changes no value, nor what yields where there is nothing to look at."""
    inputs, attends, relations = situation()
    attends = attends.at[0].set(False)
    network, behind = MultiHead(WIDTH, HEADS), MultiHead(WIDTH, HEADS, last=3)
    params = behind.init(jax.random.key(1), inputs, attends, relations)
    params = jax.tree.map(lambda leaf: leaf + 0.1, params)  # biases count, too
    output = network.apply(
        {"params": {n: p for n, p in params["params"].items() if n != "last"}}, inputs, attends, relations
    )
    last = params["params"]["last"]
    expected = output @ last["kernel"] + last["bias"]
    np.testing.assert_allclose(behind.apply(params, inputs, attends, relations), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(expected[0], last["bias"])


def test_the_mean_of_a_last_layer_is_a_layer_of_means():
    """Composing it changes neither the values nor their gradients."""
    inputs, attends, relations = situation(masks=(2,))
    attends = attends.at[0, 0].set(False)
    whole, only_mean = MultiHead(WIDTH, HEADS, last=3), MultiHead(WIDTH, HEADS, last=3, mean=True)
    params = jax.tree.map(lambda leaf: leaf + 0.1, whole.init(jax.random.key(1), inputs, attends, relations))

    def total(network, params, inputs):
        means = jnp.mean(network.apply(params, inputs, attends, relations), axis=-1)
        return jnp.sum(jnp.sin(means)), means

    expected = jax.grad(total, argnums=(1, 2), has_aux=True)(whole, params, inputs)
    found = jax.grad(total, argnums=(1, 2), has_aux=True)(only_mean, params, inputs)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found, expected)


def test_without_relations_it_is_as_if_they_were_all_zero():
    inputs, attends, relations = situation()
    network = MultiHead(WIDTH, HEADS)
    params = network.init(jax.random.key(1), inputs, attends, relations)
    zeros = network.apply(params, inputs, attends, jnp.zeros_like(relations))
    np.testing.assert_allclose(network.apply(params, inputs, attends), zeros, atol=1e-6)
    assert not np.allclose(network.apply(params, inputs, attends, relations), zeros, atol=1e-3)


def test_a_task_without_relations_has_empty_ones():
    inputs, attends, relations = situation()
    network = MultiHead(WIDTH, HEADS)
    params = network.init(jax.random.key(1), inputs, attends, relations[..., :0])
    with_empty = network.apply(params, inputs, attends, relations[..., :0])
    np.testing.assert_allclose(with_empty, network.apply(params, inputs, attends), atol=1e-6)


def test_several_masks_are_each_mask_alone():
    inputs, attends, relations = situation(masks=(4,))
    network = MultiHead(WIDTH, HEADS)
    params = network.init(jax.random.key(1), inputs, attends, relations)
    together = network.apply(params, inputs, attends, relations)
    for mask, result in zip(attends, together, strict=True):
        np.testing.assert_allclose(network.apply(params, inputs[0], mask, relations[0]), result, atol=1e-6)


def test_who_sees_nothing_gets_zeros():
    inputs, attends, relations = situation()
    attends = attends.at[1].set(False)
    network = MultiHead(WIDTH, HEADS)
    params = network.init(jax.random.key(1), inputs, attends, relations)
    params["params"]["output"]["bias"] += 1.0
    result = network.apply(params, inputs, attends, relations)
    assert not np.any(result[1])
    assert np.all(np.any(result[jnp.asarray([0, 2])], axis=-1))


@pytest.mark.parametrize("leading", [(), (7,), (2, 3)])
def test_rows_come_out_in_their_places_with_their_gradients(leading):
    """Layers put all axes of a batch into one, and back."""
    features = jax.random.normal(jax.random.key(0), (*leading, INPUTS, 6))
    relations = jax.random.normal(jax.random.key(2), (*leading, QUERIES, INPUTS, RELATIONS))
    attends = jnp.ones((*leading, 1, QUERIES, INPUTS), bool)
    network = Attention(WIDTH, HEADS)
    params = network.init(jax.random.key(1), features, relations, attends)

    def total(params, *one):
        return jnp.sum(jnp.sin(network.apply(params, *one)))

    whole = jax.grad(total)(params, features, relations, attends)
    rows = [leaf.reshape(-1, *leaf.shape[len(leading) :]) for leaf in (features, relations, attends)]
    apart = [jax.grad(total)(params, *(leaf[row] for leaf in rows)) for row in range(rows[0].shape[0])]
    added = jax.tree.map(lambda *leaves: sum(leaves), *apart)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, atol=1e-4), whole, added)


def test_masked_softmax():
    logits = jnp.asarray([[1.0, 2.0, 50.0], [1.0, 2.0, 3.0]])
    weights = masked_softmax(logits, jnp.asarray([[True, True, False], [False, False, False]]))
    np.testing.assert_allclose(weights[0], [1 / (1 + np.e), np.e / (1 + np.e), 0], rtol=1e-6)
    assert weights[1].tolist() == [0, 0, 0]


def test_gradients_of_masked_softmax():
    """Those of the softmax over what the mask leaves; nothing reaches what it hides."""
    logits = jnp.asarray([[1.0, 2.0, 50.0], [0.5, 2.0, 3.0], [1.0, 2.0, 3.0]])
    mask = jnp.asarray([[True, True, False], [True, True, True], [False, False, False]])
    factors = jnp.asarray([3.0, -1.0, 2.0])
    found = jax.grad(lambda logits: jnp.sum(masked_softmax(logits, mask) * factors))(logits)
    first = jax.grad(lambda logits: jnp.sum(jax.nn.softmax(logits) * factors[:2]))(logits[0, :2])
    second = jax.grad(lambda logits: jnp.sum(jax.nn.softmax(logits) * factors))(logits[1])
    np.testing.assert_allclose(found, jnp.stack([jnp.append(first, 0), second, jnp.zeros(3)]), atol=1e-6)
