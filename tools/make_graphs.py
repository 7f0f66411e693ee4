#!/usr/bin/env python3
"""Writes testdata/graphs/NAME/{graph.pb,feeds.npz,expect.npz,about.md} with TensorFlow's own answers.

Run by hand with a Python that has tensorflow==2.21.0:  tools/make_graphs.py [NAME ...]
The files are committed: the tests need no TensorFlow. Weights come from fixed seeds, so a second run
writes the same graphs. Grappler and oneDNN are off: the answer is that of the graph as it is written.
"""
import os
import sys

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testdata", "graphs")
f32, i32 = np.float32, np.int32
GRAPHS = {}


def graph(*feeds):
    """Registers a graph: its feeds are (name, dtype, shape), a size that the graph leaves open with a minus before it."""
    def register(fn):
        GRAPHS[fn.__name__] = (feeds, fn)
        return fn
    return register


def weights(seed, *shape, scale=None):
    """Normal weights, scaled so that a layer keeps the size of its input."""
    rng = np.random.default_rng(seed)
    fan_in = int(np.prod(shape[:-1])) or 1
    return tf.constant((rng.standard_normal(shape) * (scale or fan_in ** -0.5)).astype(f32))


@graph(("image", f32, (2, 16, 16, 3)))
def conv_net(image):
    """Strided, dilated, depthwise and pointwise convolutions, pooling, a dense layer and a softmax."""
    x = tf.nn.conv2d(image, weights(1, 3, 3, 3, 8), 2, "SAME")
    x = tf.nn.relu(tf.nn.bias_add(x, weights(2, 8)))
    x = tf.nn.depthwise_conv2d(x, weights(3, 3, 3, 8, 2), [1, 1, 1, 1], "SAME")
    x = tf.nn.relu6(tf.nn.bias_add(x, weights(4, 16)))
    x = tf.nn.conv2d(x, weights(5, 1, 1, 16, 12), 1, "VALID")
    x = x + tf.nn.conv2d(x, weights(6, 3, 3, 12, 12), 1, "SAME", dilations=2)
    x = tf.nn.max_pool2d(tf.nn.elu(x), 3, 2, "SAME")
    x = tf.reduce_mean(x, [1, 2])
    return tf.nn.softmax(tf.matmul(x, weights(7, 12, 10)))


@graph(("x", f32, (4, 10)))
def mlp(x):
    """Dense layers with tanh and GELU; log-softmax, the winning class and the top three."""
    h = tf.tanh(tf.nn.bias_add(tf.matmul(x, weights(1, 10, 32)), weights(2, 32)))
    h = tf.nn.gelu(tf.matmul(h, weights(3, 16, 32), transpose_b=True))
    logits = tf.matmul(h, weights(4, 16, 7))
    top, at = tf.math.top_k(logits, 3)
    return tf.nn.log_softmax(logits), tf.argmax(logits, 1, output_type=tf.int32), top, at


@graph(("image", f32, (1, 12, 12, 16)), ("ids", i32, (2, 3)))
def wide_layers(image, ids):
    """Layers whose weights are large enough to be stored in fewer bits: convolutions of 3x3 and 1x1, a table, dense layers."""
    x = tf.nn.relu(tf.nn.conv2d(image, weights(1, 3, 3, 16, 32), 1, "SAME"))
    x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, weights(2, 1, 1, 32, 48), 2, "SAME"), weights(3, 48)))
    x = tf.tanh(tf.matmul(tf.reduce_mean(x, [1, 2]), weights(4, 48, 32)))
    rows = tf.gather(weights(5, 60, 32, scale=1.0), ids)
    return tf.nn.softmax(tf.matmul(tf.reduce_mean(rows, 1) + x, weights(6, 32, 40))), rows


@graph(("x", f32, (3, 4, 5)))
def reductions(x):
    """Every kind of reduction over several axes, kept and dropped, and running sums."""
    positive = tf.greater(x, 0.0)
    return (tf.reduce_sum(x, [0, 2]), tf.reduce_mean(x, -1, keepdims=True), tf.reduce_max(x, 1), tf.reduce_min(x),
            tf.reduce_prod(x, [1]), tf.reduce_all(positive, 2), tf.reduce_any(positive, [0, 1]),
            tf.cumsum(x, 1, exclusive=True), tf.cumsum(x, 2, reverse=True), tf.reduce_logsumexp(x, [1, 2]))


@graph(("x", f32, (4, 6, 5)))
def slices(x):
    """Strided slices with all their masks, padding, concatenation, splitting, transposition."""
    a, b = tf.split(x, [2, 4], 1)
    return (x[::2, 1:-1, ::-1], x[1, ..., tf.newaxis, 2:], x[-1], tf.pad(x, [[1, 0], [0, 2], [1, 1]]),
            tf.pad(x, [[0, 0], [2, 1], [1, 2]], "REFLECT"), tf.concat([b, a], 1), tf.stack([x[0], x[2]], -1),
            tf.transpose(x, [2, 0, 1]), tf.reverse(x, [0, 2]), tf.tile(x[:1, :2], [2, 1, 3]),
            tf.slice(x, [1, 0, 2], [2, -1, 3]), tf.roll(x, 2, 1))


@graph(("x", f32, (2, 5, 5, 6)))
def norms(x):
    """Batch norm from stored statistics, layer norm from the moments, L2 norm, local response norm."""
    y, _, _ = tf.compat.v1.nn.fused_batch_norm(
        x, weights(1, 6), weights(2, 6), mean=weights(3, 6), variance=tf.abs(weights(4, 6)) + 0.5,
        epsilon=1e-3, is_training=False)
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    layer = (x - mean) * tf.math.rsqrt(variance + 1e-5) * weights(5, 6)
    return y, layer, tf.nn.l2_normalize(x, -1), tf.nn.local_response_normalization(x, 2)


@graph(("x", f32, (1, 6, 7, 4)))
def resize(x):
    """Bilinear and nearest resizing, transposed convolution, pooling, depth to space and back."""
    up = tf.raw_ops.ResizeBilinear(images=x, size=[11, 9], half_pixel_centers=True)
    corners = tf.raw_ops.ResizeBilinear(images=x, size=[12, 14], align_corners=True)
    near = tf.raw_ops.ResizeNearestNeighbor(images=x, size=[3, 15], half_pixel_centers=True)
    wide = tf.nn.conv2d_transpose(x, weights(1, 3, 3, 5, 4), [1, 12, 14, 5], 2, "SAME")
    return (up, corners, near, wide, tf.nn.avg_pool2d(x, 2, 2, "SAME"), tf.nn.depth_to_space(x, 2),
            tf.nn.space_to_depth(x[:, :, :6], 2))


@graph(("ids", i32, (2, 6)), ("mask", i32, (2, 6)))
def attention(ids, mask):
    """An embedding, one head-split attention block with a mask, and a gather of the result."""
    x = tf.gather(weights(1, 20, 8, scale=1.0), ids)
    def heads(seed):
        return tf.transpose(tf.reshape(tf.einsum("bld,de->ble", x, weights(seed, 8, 8)), [2, 6, 2, 4]), [0, 2, 1, 3])
    scores = tf.matmul(heads(2), heads(3), transpose_b=True) * 0.5
    scores += (1.0 - tf.cast(mask, tf.float32))[:, tf.newaxis, tf.newaxis, :] * -1e9
    out = tf.matmul(tf.nn.softmax(scores), heads(4))
    out = tf.reshape(tf.transpose(out, [0, 2, 1, 3]), [2, 6, 8])
    return out, tf.one_hot(ids, 20), tf.gather_nd(out, [[0, 1], [1, 5]])


@graph(("a", i32, (3, 8)), ("b", i32, (3, 8)), ("x", f32, (3, 8)))
def integers(a, b, x):
    """Integer division and remainder of either sign, bits, shifts, casts, comparisons, selection."""
    d = tf.where(tf.equal(b, 0), tf.ones_like(b), b)
    s = tf.bitwise.bitwise_and(b, 7)
    return (tf.math.floordiv(a, d), tf.math.floormod(a, d), tf.truncatediv(a, d), tf.truncatemod(a, d),
            tf.bitwise.bitwise_xor(a, b), tf.bitwise.left_shift(a, s), tf.bitwise.right_shift(a, s),
            tf.cast(x * 100.0, tf.int32), tf.cast(a, tf.float32), tf.cast(a, tf.uint8), tf.round(x * 4.0),
            tf.where(a > b, a, b), tf.clip_by_value(a, -5, 9), tf.cast(tf.cast(x, tf.bfloat16), tf.float32),
            tf.math.floordiv(x, 0.25), tf.sign(x))


@graph(("x", f32, (4,)), ("n", i32, ()))
def loops(x, n):
    """A loop whose count is fed, a loop over a state of two arrays, and a branch."""
    def body(i, v):
        return i + 1, v * 0.5 + tf.sin(v)
    count, y = tf.while_loop(lambda i, v: i < n, body, [0, x])
    z = tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.sqrt(tf.abs(x)), lambda: x * x)
    return count, y, z


@graph(("x", f32, (5, 9)))
def functions(x):
    """The elementwise functions of neural networks, over a range that reaches their tails."""
    v = x * 4.0
    p = tf.abs(v) + 0.01
    return (tf.exp(v), tf.math.log(p), tf.math.log1p(p), tf.math.expm1(v), tf.sin(v), tf.cos(v), tf.tan(x), tf.tanh(v),
            tf.sigmoid(v), tf.math.erf(x), tf.math.rsqrt(p), tf.sqrt(p), tf.pow(p, v), tf.nn.softplus(v),
            tf.nn.softsign(v), tf.nn.selu(v), tf.nn.leaky_relu(v), tf.nn.swish(v), tf.atan2(v, x + 0.3), tf.floor(v),
            tf.math.squared_difference(v, x), tf.minimum(v, 1.0), tf.asinh(v), tf.math.log_sigmoid(v))


@graph(("x", f32, (4, 9)), ("count", i32, ()), ("back", i32, ()), ("at", i32, (2,)), ("dy", f32, (4, 3)))
def counted_slices(x, count, back, at, dy):
    """Slices and updates at places that are fed or counted by a loop: columns, rows, ranges, strides, from the end, gradients."""
    raw, i, j = tf.raw_ops, count, back
    one = tf.ones([2], tf.int32)
    long = tf.cast(i, tf.int64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x[:, i:i + 3] * dy) + tf.reduce_sum(x[j, 1:4] ** 2) + tf.reduce_sum(x[2, i - 5:i + 3:3] ** 3)
    update = {"input": x, "begin_mask": 1, "end_mask": 1}
    def decode(n, tokens):
        scores = tf.gather(x, tokens[:, n] % 4)[:, :4]
        following = tf.argmax(scores + x[:, n:n + 1], 1, output_type=tf.int32)
        return n + 1, raw.TensorStridedSliceUpdate(
            input=tokens, begin=[0, n + 1], end=[0, n + 2], strides=[1, 1], value=following, begin_mask=1, end_mask=1,
            shrink_axis_mask=2)
    tokens = tf.while_loop(lambda n, _: n < 8, decode, [0, tf.zeros([4, 9], tf.int32)])[1]
    def scan(n, sums):
        return n + 1, tf.tensor_scatter_nd_update(sums, [[n]], [tf.reduce_sum(x[n % 4, 2 * (n // 4):2 * (n // 4 + 1)])])
    sums = tf.while_loop(lambda n, _: n < 12, scan, [0, tf.zeros([12])])[1]
    return (x[:, i], x[j], x[j, i], x[j:j + 1], x[:, i:i + 3], x[..., i - 4:i + 2:2], x[:, i:i - 4:-1], x[1, tf.newaxis, i:3 + i],
            x[:, 2 * (i - 4):2 * (i - 3)], x[:, long:long + 2], tf.strided_slice(x, at, at + [2, 3], one), x[at[0]:at[0] + 2, ::-2],
            x[:, j - 4:j - 1], tape.gradient(y, x), tokens, sums,
            raw.TensorStridedSliceUpdate(begin=[0, i], end=[0, i + 3], strides=[1, 1], value=dy, **update),
            raw.TensorStridedSliceUpdate(begin=[0, j], end=[0, j - 6], strides=[1, -2], value=dy, **update),
            raw.TensorStridedSliceUpdate(begin=[0, i - 5], end=[0, i + 1], strides=[1, 2], value=dy, **update))


def ranges(count):
    """Seeded ranges of fake quantisation: lows, highs, bits, whether they are narrow."""
    rng = np.random.default_rng(7)
    low = -np.abs(rng.standard_normal(count)) * rng.choice([0.1, 1, 10], count)
    high = np.abs(rng.standard_normal(count)) * rng.choice([0.1, 1, 10], count)
    low[3], high[5] = 0, 0
    bits = [2 + i % 15 for i in range(count)]
    return low.astype(f32), high.astype(f32), bits, [i % 3 == 0 for i in range(count)]


def borders(count, columns):
    """A row a range: the borders that zero is nudged to, their neighbours, and places halfway between two steps."""
    rng = np.random.default_rng(8)
    rows = []
    for low, high, bits, narrow in zip(*ranges(count)):
        first, last = f32(narrow), f32(2 ** bits - 1)
        step = (high - low) / (last - first)
        zero = np.clip(np.floor(first - low / step + f32(0.5)), first, last)
        ends = np.array([first - zero, last - zero], f32) * step
        # Not beside zero: TensorFlow's threads take the smallest numbers for zero.
        beside = [np.nextafter(e, f32(to)) if e else e for e in ends for to in (-1e9, 1e9)]
        halves = (rng.integers(0, 2 ** bits, columns - 8) + 0.5 - zero) * step
        rows.append(np.concatenate([ends, beside, [low, high], halves]))
    return np.array(rows, f32)


@graph(("borders", f32, (30, 40)), ("x", f32, (20, 30)))
def fake_quant(near, x):
    """Fake quantisation by attributes, by fed ranges and by channels, of 2 to 16 bits, and its gradients: bit for bit."""
    raw, out = tf.raw_ops, []
    lows, highs, bits, narrow = ranges(30)
    for i in range(30):
        kind = {"num_bits": bits[i], "narrow_range": narrow[i]}
        row, ends = near[i], {"min": tf.constant(lows[i]), "max": tf.constant(highs[i])}
        fixed = {"min": float(lows[i]), "max": float(highs[i])}
        out += [raw.FakeQuantWithMinMaxVars(inputs=row, **ends, **kind),
                raw.FakeQuantWithMinMaxArgs(inputs=row, **fixed, **kind),
                raw.FakeQuantWithMinMaxArgsGradient(gradients=tf.ones_like(row) * -2.0, inputs=row, **fixed, **kind),
                raw.FakeQuantWithMinMaxVarsGradient(gradients=tf.ones_like(row), inputs=row, **ends, **kind)]
    for bits in (3, 8, 13):
        kind = {"min": lows, "max": highs, "num_bits": bits, "narrow_range": bits == 8}
        out += [raw.FakeQuantWithMinMaxVarsPerChannel(inputs=x, **kind),
                raw.FakeQuantWithMinMaxVarsPerChannel(inputs=tf.transpose(near), **kind),
                raw.FakeQuantWithMinMaxVarsPerChannelGradient(
                    gradients=tf.ones_like(x), inputs=x, **kind)]
    return out


@graph(("image", f32, (2, 8, 8, 8)))
def quantized_layers(image):
    """Layers behind fake quantisation, of activations around zero and not, of weights by channel: convolutions with padding, strides and
    none, a residual sum, pools, a depthwise convolution, dense layers. Scales are powers of two, so that every sum is exact in any order: bit for bit."""
    raw = tf.raw_ops

    def activations(x, least, step):
        return raw.FakeQuantWithMinMaxVars(inputs=x, min=least * step, max=(least + 255) * step, num_bits=8, narrow_range=False)

    def kernel(seed, *shape):
        steps = 2.0 ** -np.random.default_rng(seed).integers(7, 10, shape[-1]).astype(f32)
        return raw.FakeQuantWithMinMaxVarsPerChannel(
            inputs=weights(seed, *shape), min=-127 * steps, max=127 * steps, num_bits=8, narrow_range=True)

    def bias(seed, n):
        return tf.round(weights(seed, n, scale=0.5) * 64) / 64

    x = activations(image, -100, 2.0 ** -5)
    x = tf.nn.relu6(tf.nn.bias_add(tf.nn.conv2d(x, kernel(1, 3, 3, 8, 16), 1, "SAME"), bias(2, 16)))
    first = activations(x, 0, 2.0 ** -5)
    x = tf.nn.bias_add(tf.nn.conv2d(first, kernel(3, 1, 1, 16, 16), 1, "VALID"), bias(4, 16))
    second = activations(x, -128, 2.0 ** -6)
    x = activations(tf.nn.depthwise_conv2d(second, weights_of_levels(5, 3, 3, 16, 1), [1, 1, 1, 1], "SAME"), -90, 2.0 ** -5)
    x = activations(x + first, -60, 2.0 ** -4)
    x = tf.nn.relu(tf.nn.conv2d(x, kernel(6, 3, 3, 16, 24), 2, "SAME"))
    x = raw.QuantizeAndDequantizeV4(input=x, input_min=-128 * 2.0 ** -5, input_max=127 * 2.0 ** -5, signed_input=True, num_bits=8, range_given=True)
    pooled = activations(tf.reduce_mean(x, [1, 2]), -3, 2.0 ** -7)
    dense = tf.nn.relu(tf.matmul(pooled, kernel(7, 24, 16)))
    logits = tf.matmul(activations(dense, 0, 2.0 ** -6), kernel(8, 16, 10))
    return second, tf.nn.max_pool2d(x, 2, 2, "VALID"), pooled, logits


def weights_of_levels(seed, *shape):
    """Weights from -127 to 127 times 2^-7."""
    return tf.constant(np.random.default_rng(seed).integers(-127, 128, shape).astype(f32) / 128)


@graph(("zeros", f32, (5, 40)))
def order(x):
    """Top-k, sort and argsort of numbers among which there are many zeros of either sign: bit for bit."""
    half = tf.cast(x, tf.float16)
    return ([tf.math.top_k(x, k) for k in (1, 7, 40)], tf.math.top_k(half, 9), tf.math.top_k(tf.cast(x, tf.float64), 40),
            tf.sort(x), tf.argsort(x), tf.sort(x, direction="DESCENDING"), tf.argsort(x, direction="DESCENDING", stable=True),
            tf.math.in_top_k([3] * 5, x, 12), tf.math.approx_max_k(x, 6))


def v1(fn):
    """Marks a graph that is built with control flow of TensorFlow 1."""
    fn.v1 = True
    return fn


@graph(("x", f32, (3,)), ("n", i32, ()))
@v1
def loops_v1(x, n):
    """TensorFlow 1: nested loops with conditions inside, several exits, a value that only a condition uses, a dead side."""
    c = tf.compat.v1

    def inner(i, y):
        y = c.cond(tf.equal(i % 2, 0), lambda: tf.sin(y) + x, lambda: y * 0.5)
        return i + 1, y

    def outer(i, y, total):
        _, y = c.while_loop(lambda j, y: tf.logical_and(j < i, tf.reduce_sum(y) < 9.0), inner, [0, y])
        return i + 1, y, total + y

    training = c.placeholder_with_default(False, [], "training")
    count, y, total = c.while_loop(lambda i, *_: i < n, outer, [0, x, tf.zeros([3])])
    y = c.cond(training, lambda: c.nn.dropout(y, rate=0.5), lambda: y)
    z = c.case([(tf.reduce_sum(y) > 100.0, lambda: y), (n > 3, lambda: c.cond(n > 4, lambda: -y, lambda: y + 1.0))],
               default=lambda: tf.zeros([3]))
    merged, which = c.raw_ops.Merge(inputs=c.raw_ops.Switch(data=total, pred=n > 100))
    return count, y, total, z, merged, which


@graph(("x", f32, (5, 3)), ("length", i32, (2,)))
@v1
def arrays_v1(x, length):
    """TensorFlow 1: TensorArrays through a loop and a condition, scattered, split and joined; a recurrent net with lengths; gradients
    of loops, which keep values on stacks."""
    c = tf.compat.v1
    rows, out = c.TensorArray(tf.float32, 5, clear_after_read=False).unstack(x), c.TensorArray(tf.float32, 5)

    def step(i, s, out):
        s = tf.tanh(s + rows.read(i))
        return i + 1, s, out.write(i, c.cond(i > 2, lambda: s * 2.0, lambda: rows.read(4 - i)))

    _, s, out = c.while_loop(lambda i, *_: i < 5, step, [0, tf.zeros([3]), out])
    pieces = c.TensorArray(tf.float32, 5, infer_shape=False).split(tf.reshape(x, [15]), [3] * 5)
    mixed = c.TensorArray(tf.float32, 5, clear_after_read=False).scatter([4, 2, 0, 1, 3], x)
    w = weights(1, 7, 4)

    def cell(t, h, hs):
        new = tf.tanh(tf.matmul(tf.concat([sequence.read(t), h], 1), w))
        h = tf.where(tf.tile((t < length)[:, tf.newaxis], [1, 4]), new, h)
        return t + 1, h, hs.write(t, h)

    sequence = c.TensorArray(tf.float32, 5, clear_after_read=False).unstack(tf.stack([x, x * 0.5], 1))
    longest = tf.minimum(5, tf.maximum(1, tf.reduce_max(length)))
    _, h, hs = c.while_loop(lambda t, *_: t < longest, cell, (0, tf.zeros([2, 4]), c.TensorArray(tf.float32, 5, element_shape=[2, 4])),
                            maximum_iterations=5)

    stacked = out.stack()
    gradients = c.gradients([s, stacked, h], [x, w])
    return s, stacked, pieces.concat(), tf.cast(c.raw_ops.TensorArraySizeV3(handle=pieces.handle, flow_in=pieces.flow), tf.float32) * mixed.stack() + mixed.gather([1, 1, 0, 4, 2]), h, hs.stack(), *gradients


@graph(("x", f32, (5, 3)), ("at", i32, (2,)))
def growing_lists(x, at):
    """TensorArrays that grow: to an index that is only known at run time, by the counter of a loop, forwards and backwards, in steps,
    in a loop inside of a loop and in a branch; lists that are pushed and popped in loops; gradients of loops, which keep values of
    every round in such lists."""
    index = tf.clip_by_value(at[0] + 3, 0, 6)
    grown = tf.TensorArray(tf.float32, 2, dynamic_size=True, clear_after_read=False, element_shape=[3])
    grown = grown.write(0, x[0]).write(index, x[1]).write(1, x[2])
    reads = grown.read(tf.minimum(2, grown.size() - 1)), grown.read(grown.size() - 1)

    def counted(array, rounds, place, value=lambda i: x[i]):
        body = lambda i, array: (i + 1, array.write(place(i), value(i)))
        return tf.while_loop(lambda i, _: i < rounds, body, (0, array))[1]

    array = lambda n: tf.TensorArray(tf.float32, n, dynamic_size=True)
    forwards = counted(array(0), 5, lambda i: i).stack()
    sized = counted(array(5), 5, lambda i: i).stack()
    backwards = counted(array(1), 4, lambda i: 3 - i).stack()
    strided = counted(tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[3]), 3, lambda i: 2 * i + 1).stack()
    some = counted(array(0), tf.clip_by_value(at[1], 1, 5), lambda i: i)
    total = tf.while_loop(lambda i, _: i < some.size(), lambda i, s: (i + 1, s + tf.ensure_shape(some.read(i), [3])), (0, tf.zeros([3])),
                          maximum_iterations=5)[1]

    raw = tf.raw_ops
    empty = raw.EmptyTensorList(element_shape=[3], max_num_elements=-1, element_dtype=tf.float32)
    push = lambda i, l: (i + 1, raw.TensorListPushBack(input_handle=l, tensor=x[i]))
    inner = lambda i, l: (i + 1, tf.while_loop(lambda j, _: j < i, lambda j, l: (j + 1, push(j, l)[1]), (0, l))[1])
    listed = lambda l: raw.TensorListStack(input_handle=l, element_shape=[3], element_dtype=tf.float32)
    nested = listed(tf.while_loop(lambda i, _: i < 4, inner, (0, empty))[1])
    odd = lambda i, l: (i + 1, tf.cond(x[i, 0] > 0.0, lambda: push(i, l)[1], lambda: l))
    positive = tf.while_loop(lambda i, _: i < 5, odd, (0, empty))[1]

    def pop(i, l, s):
        l, top = raw.TensorListPopBack(input_handle=l, element_shape=[3], element_dtype=tf.float32)
        return i + 1, l, tf.tanh(s * 0.5) + tf.ensure_shape(top, [3])

    count = raw.TensorListLength(input_handle=positive)
    rest, summed = tf.while_loop(lambda i, *_: i < count - 1, pop, (0, positive, tf.zeros([3])))[1:]

    w = weights(1, 3, 3)
    with tf.GradientTape() as tape:
        tape.watch([x, w])
        cell = lambda i, h, out: (i + 1, tf.tanh(tf.linalg.matvec(w, h) + x[i]), out.write(i, h * x[i]))
        _, h, out = tf.while_loop(lambda i, *_: i < 5, cell, (0, tf.ones([3]), tf.TensorArray(tf.float32, 5, element_shape=[3])))
        some_rounds = tf.while_loop(lambda i, _: i < at[1], lambda i, h: (i + 1, tf.sin(h) * x[i]), (0, h), maximum_iterations=5)[1]
        loss = tf.reduce_sum(h * h) + tf.reduce_sum(out.stack()) + tf.reduce_sum(some_rounds)
    return (*reads, grown.size(), forwards, sized, backwards, strided, some.size(), total, nested, count,
            raw.TensorListLength(input_handle=rest), summed, loss, *tape.gradient(loss, [x, w]))


@graph(("x", f32, (3,)), ("length", i32, (2,)))
def open_rounds(x, length):
    """Lists that grow in loops whose rounds only values tell, forwards, backwards, in loops of others and as a stack of what is to be
    done, with gradients; lists of a length that is fed. Nothing bounds them: there is room for what the caller allows."""
    number = tf.reduce_sum(length) + 7
    raw = tf.raw_ops

    def collatz(i, n, out):
        return i + 1, tf.where(n % 2 == 0, n // 2, 3 * n + 1), out.write(i, n)

    steps = tf.while_loop(lambda i, n, _: n != 1, collatz, (0, number, tf.TensorArray(tf.int32, 0, dynamic_size=True)))[2].stack()

    empty = raw.EmptyTensorList(element_shape=tf.constant([], tf.int32), max_num_elements=-1, element_dtype=tf.int32)
    push = lambda l, n: raw.TensorListPushBack(input_handle=l, tensor=n)

    def visit(todo, total):
        todo, n = raw.TensorListPopBack(input_handle=todo, element_shape=tf.constant([], tf.int32), element_dtype=tf.int32)
        todo = tf.cond(n > 1, lambda: push(push(todo, n // 2), n - n // 2 - 1), lambda: todo)
        return todo, total + n

    left = lambda todo, _: raw.TensorListLength(input_handle=todo) > 0
    total = tf.while_loop(left, visit, (push(empty, number), 0))[1]

    with tf.GradientTape() as tape:
        tape.watch(x)
        grown = tf.while_loop(lambda y: tf.reduce_sum(y * y) < 100.0, lambda y: [y * 1.5 + tf.sin(y)], [x])[0]
        n = tf.abs(length[0]) + 2
        rows = tf.TensorArray(tf.float32, n)
        row = lambda i, y, rows: (i + 1, tf.tanh(y) * 1.5, rows.write(i, y * tf.cast(i + 1, tf.float32)))
        _, last, rows = tf.while_loop(lambda i, *_: i < n, row, (0, x, rows))
        rows = rows.stack()
        loss = tf.reduce_sum(grown) + tf.reduce_sum(last) + tf.reduce_sum(rows)

    def longest(i, most):
        steps = tf.while_loop(lambda _, n, *__: n != 1, collatz, (0, number + i, tf.TensorArray(tf.int32, 0, dynamic_size=True)))[2]
        return i + 1, tf.maximum(most, tf.cond(i > 0, lambda: steps.size(), lambda: 0))

    most = tf.while_loop(lambda i, _: i < length[0] + 3, longest, (0, 0))[1]
    at = length[1] * length[1]
    far = tf.TensorArray(tf.float32, 1, dynamic_size=True, element_shape=[3]).write(at, x)
    return steps, total, rows, loss, tape.gradient(loss, x), most, far.size(), far.read(at)


@graph(("x", f32, (2, 4)), ("length", i32, (2,)))
@v1
def open_rounds_v1(x, length):
    """TensorFlow 1: TensorArrays that grow in a loop until all rows are done, and of a length that is fed, with gradients."""
    c, w = tf.compat.v1, weights(1, 4, 4)
    out = c.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[2, 4], clear_after_read=False)

    def decode(i, h, out, done):
        h = tf.tanh(tf.matmul(h, w)) + 0.05 * tf.cast(i, tf.float32)
        return i + 1, h, out.write(i, h), tf.logical_or(done, h[:, 0] > 0.6)

    goes_on = lambda i, h, out, done: tf.logical_and(i < 1000000000, tf.logical_not(tf.reduce_all(done)))
    rounds, _, out, _ = c.while_loop(goes_on, decode, [0, x, out, tf.zeros([2], tf.bool)])
    decoded = out.stack()

    n = length[0] + 3
    rows = c.while_loop(lambda i, _: i < n, lambda i, rows: (i + 1, rows.write(i, x * tf.cast(i, tf.float32))),
                        [0, c.TensorArray(tf.float32, n)])[1].stack()
    return rounds, decoded, rows, *(tf.gradients(tf.reduce_sum(y * y), x)[0] for y in (decoded, rows))


@graph(("zeros", f32, (4, 6)), ("x", f32, (6, 3)), ("ids", i32, (7,)))
def sparse(zeros, x, ids):
    """Sparse tensors as long as the data say, what `tf.sparse` does with them, and embeddings of rows with few ids or none."""
    s = tf.sparse.from_dense(zeros)
    wide = tf.sparse.reshape(s, [3, -1])
    both = tf.sparse.concat(1, [s, tf.SparseTensor([[0, 5], [3, 0]], x[0, :2], [4, 6])])
    table, places = weights(3, 20, 5), tf.constant([[0, 0], [0, 1], [2, 0], [2, 3], [2, 1], [3, 2], [5, 0]], tf.int64)
    words = tf.sparse.reorder(tf.SparseTensor(places, tf.cast(ids, tf.int64), [6, 4]))
    heavy = tf.SparseTensor(words.indices, tf.abs(tf.reshape(x, [18])[:7]), [6, 4])
    embedded = [tf.nn.embedding_lookup_sparse(table, words, w, combiner=c) for w in (None, heavy) for c in ("sum", "mean", "sqrtn")]
    safe = [tf.nn.safe_embedding_lookup_sparse(table, words, w, combiner="mean", default_id=7) for w in (None,)]
    filled, gaps = tf.sparse.fill_empty_rows(both, 0.5)
    return (tf.sparse.sparse_dense_matmul(s, x), tf.sparse.to_dense(wide), tf.sparse.to_dense(tf.sparse.reorder(both)), tf.sparse.reduce_sum(both, 0),
            tf.sparse.reduce_max(s, 1), filled.values, filled.indices, gaps, tf.sparse.to_dense(s.__mul__(x[:, 0])), tf.sparse.add(s, tf.reshape(x, [3, 6])[:1] + tf.zeros([4, 6])),
            tf.math.segment_mean(x, tf.constant([0, 0, 1, 3, 3, 3])), *embedded, *safe)


@graph(("x", f32, (3,)), ("n", i32, ()))
@v1
def branches_v1(x, n):
    """TensorFlow 1: gradients of loops that are on one side of a condition: of one that is taken, of one that is not, and of one
    behind two tests."""
    c = tf.compat.v1

    def grown(y, end):
        body = lambda i, y: (i + 1, tf.sin(y) * x)
        y = c.while_loop(lambda i, y: tf.not_equal(i, end), body, (0, y), maximum_iterations=6)[1]
        return tf.tanh(y * 2.0)

    taken = c.cond(n > 2, lambda: grown(x * 0.5, n) * x, lambda: x)
    left = c.cond(n > 100, lambda: x, lambda: c.cond(n < 0, lambda: grown(taken, n - 10), lambda: taken * 3.0))
    nested = c.cond(n > 1, lambda: c.cond(n > 3, lambda: grown(left, n - 2), lambda: left) + x, lambda: left * 2.0)
    outs = [taken, left, nested]
    return (*outs, *c.gradients(tf.add_n(outs), [x]))


@graph(("x", f32, (-5, 6)), ("image", f32, (1, -7, -5, 2)))
def open_sizes(x, image):
    """Sizes that are left open: diagonals, the few largest of a batch, the square in the middle of an image, ids of rows that may be empty."""
    n = tf.shape(x)[0]
    square = tf.matmul(x, x, transpose_b=True)
    band = tf.linalg.diag_part(x, k=(-1, 2), padding_value=7.0, align="RIGHT_LEFT")
    diagonals = tf.linalg.diag_part(square), band, tf.linalg.diag(x[:, 0]), tf.linalg.set_diag(square, x[:, 1])
    largest = tf.math.top_k(x[:, 2], tf.minimum(3, n))
    height, width = tf.shape(image)[1], tf.shape(image)[2]
    side = tf.minimum(height, width)
    middle = tf.image.crop_to_bounding_box(image, (height - side) // 2, (width - side) // 2, side, side)
    at = tf.where(x > 0.8)
    ids = tf.cast(tf.gather_nd(x, at) * 5, tf.int64) % 9
    filled, _ = tf.sparse.fill_empty_rows(tf.SparseTensor(at, ids, tf.shape(x, tf.int64)), tf.constant(0, tf.int64))
    rows = tf.nn.embedding_lookup_sparse(weights(1, 9, 4), filled, None, combiner="mean")
    return *diagonals, *largest, middle, tf.maximum(height, width) + tf.zeros([tf.maximum(height, width)], tf.int32), rows


@graph(("x", f32, (-6, -2, 4)))
def open_path(x):
    """The best path through classes, of an open time and batch, as a matrix."""
    (path,), probability = tf.nn.ctc_greedy_decoder(3 * x, tf.fill([tf.shape(x)[1]], tf.shape(x)[0]))
    return path.indices, tf.sparse.to_dense(path, default_value=-1), probability


@graph(("x", f32, (-5, 2, 4)), ("scores", f32, (-5, 2)))
def open_boxes(x, scores):
    """The best of an open number of boxes, of each class and of all, fewer and more of them than are asked for."""
    boxes = tf.concat([x[..., :2] - tf.abs(x[..., 2:]), x[..., :2] + tf.abs(x[..., 2:])], -1)[None]
    few = tf.image.combined_non_max_suppression(boxes, scores[None], 3, 4, 0.4, -0.5, clip_boxes=False)
    many = tf.image.combined_non_max_suppression(boxes[:, :, :1], scores[None, :, :1], 9, 8, 0.4, 0.0)
    return *few, *many, *tf.math.top_k(scores[:, 0], tf.minimum(6, tf.shape(scores)[0]))


@graph(("image", f32, (-2, -7, -6, 3)))
def open_images(image):
    """Images of any number, height and width: gradients of windows, resizes of every kind with their gradients, statistics, random numbers."""
    conv, pooled = tf.nn.conv2d(image, weights(1, 3, 3, 3, 4), 2, "SAME"), tf.nn.avg_pool2d(image, 3, 2, "SAME")
    grads = [tf.gradients([tf.reduce_sum(conv * conv), tf.reduce_sum(pooled * pooled)], image)[0]]
    size = tf.shape(image)[1:3]
    methods = "bilinear", "nearest", "bicubic", "area", "lanczos3", "gaussian", "mitchellcubic"
    resized = [tf.image.resize(image, to, method) for method in methods for to in (2 * size, (size + 1) // 2, [5, 9])]
    grads += [tf.gradients(tf.reduce_sum(y * y), image)[0] for y in resized if "Area" not in y.op.type]
    normal, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
        x=image, scale=weights(2, 3), offset=weights(3, 3), mean=np.zeros(0, f32), variance=np.zeros(0, f32), is_training=True)
    return *grads, *resized, normal, mean, variance, tf.random.stateless_uniform(tf.shape(image), [1, 2])


@graph(("x", f32, (-3, -5, 4)))
def open_steps(x):
    """Steps of an open number in an open batch: a recurrence whose results a list keeps, and the largest of each."""
    steps, count = tf.transpose(x, [1, 0, 2]), tf.shape(x)[1]
    rows = tf.TensorArray(f32, count).unstack(steps)
    body = lambda i, h, kept: (i + 1, tf.tanh(h + rows.read(i)), kept.write(i, tf.tanh(h + rows.read(i))))
    kept = tf.while_loop(lambda i, h, kept: i < count, body, [0, tf.zeros_like(steps[0]), tf.TensorArray(f32, count)])[2]
    return kept.stack(), *tf.math.top_k(tf.transpose(x, [0, 2, 1]), (count + 1) // 2), tf.linalg.inv(
        tf.matmul(x[:, :, :2], x[:, :, :2], transpose_a=True) + 3.0 * np.eye(2, dtype=f32))


@graph(("x", f32, (-3, -5, 4)), ("ids", i32, (-3, -5)))
def open_layers(x, ids):
    """Layers over each position of an open number in an open batch, whose axes are merged in between, and what needs merged rows in order."""
    count, length = tf.shape(x)[0], tf.shape(x)[1]
    rows = tf.tanh(tf.matmul(tf.reshape(x, [-1, 4]), weights(0, 4, 6)) + weights(1, 6))
    rows -= tf.reduce_mean(rows, axis=1, keepdims=True)
    words = tf.gather(weights(2, 9, 6), tf.reshape(ids % 9, [-1]))
    layer = tf.reshape(tf.matmul(rows + words, weights(3, 6, 4)), [count, length, 4])
    columns = tf.matmul(weights(4, 3, 6), rows, transpose_b=True)
    turned = tf.reshape(tf.transpose(columns), [count, length, 3])
    return layer + x, turned, tf.cumsum(rows), tf.reduce_max(words + rows, axis=0), rows[1:]


@graph(("values", f32, (-9,)), ("lengths", i32, (-4,)))
def ragged_rows(values, lengths):
    """Rows of a ragged tensor, folded: there are as many values as the lengths say."""
    row = tf.repeat(tf.range(tf.shape(lengths)[0]), lengths)
    most = tf.math.unsorted_segment_max(values, row, tf.shape(lengths)[0])
    parts = tf.exp(values - tf.gather(most, row))
    return most, parts / tf.gather(tf.math.unsorted_segment_sum(parts, row, tf.shape(lengths)[0]), row)


@graph(("values", f32, (-9,)), ("lengths", i32, (-4,)))
def ragged_ids(values, lengths):
    """Rows of ids of unlike lengths as a sparse tensor, looked up, and counted."""
    rows = tf.RaggedTensor.from_row_lengths(tf.cast(tf.abs(values) * 5, tf.int64) % 9, tf.cast(lengths, tf.int64), validate=False)
    all = rows.to_sparse()
    means = tf.nn.safe_embedding_lookup_sparse(weights(1, 9, 4), all, combiner="mean")
    counts = tf.math.bincount(rows, minlength=9, maxlength=9, axis=-1), tf.math.bincount(all, minlength=7, maxlength=7, axis=-1, binary_output=True)
    return all.indices, all.values, all.dense_shape, means, *counts


@graph(("x", f32, (-6, 4)), ("at", i32, (1,)))
def sizes_within(x, at):
    """Sizes that values say within loops and branches: how many are above 0 in each round, and in each row of an open batch."""
    def positive(row):
        return tf.gather(row, tf.where(row > 0)[:, 0])
    rows = tf.map_fn(lambda row: tf.reduce_sum(positive(row)) + tf.cast(tf.size(positive(row)), f32), x)
    flat = tf.reshape(x, [-1])
    rounds, left = tf.while_loop(
        lambda rounds, left: tf.reduce_any(left > 0),
        lambda rounds, left: (rounds + tf.size(positive(left)), left - tf.reduce_mean(positive(left)) - 0.1),
        [0, flat])
    some = tf.cond(at[0] > 1, lambda: tf.boolean_mask(x, x[:, 0] > 0), lambda: x[:1])
    one = tf.cond(at[0] > 1, lambda: tf.reduce_sum(positive(flat)), lambda: tf.reduce_sum(tf.unique(flat)[0]))
    return rows, rounds, left, some, one


@graph(("values", f32, (-9,)), ("lengths", i32, (-4,)))
def rows_in_loops(values, lengths):
    """Rows of a ragged tensor one by one, a branch on how many values say, and a loop for as long as there are any."""
    rows = tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)
    sums = tf.map_fn(lambda row: tf.reduce_sum(row * row) / tf.cast(1 + tf.size(row), f32), rows, fn_output_signature=f32)
    above = tf.where(values > 0.5)[:, 0]
    mean = tf.cond(tf.size(above) > 1, lambda: tf.reduce_mean(tf.gather(values, above)), lambda: tf.constant(-1.0))
    left, rounds = tf.while_loop(lambda v, n: tf.size(tf.where(v > 0)) > 0, lambda v, n: (v - 0.3, n + 1), [values, 0])
    return sums, mean, left, rounds


@graph(("values", f32, (-9,)), ("lengths", i32, (-4,)), ("x", f32, (-5, 6)))
def rows_from_loops(values, lengths, x):
    """Rows that differ in length and leave a loop: of a ragged tensor, filtered, of an array's rows and of a vector's numbers."""
    spec = tf.RaggedTensorSpec([None], f32, 0)
    rows = tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)
    parts = tf.map_fn(tf.nn.softmax, rows, fn_output_signature=spec)
    above = tf.map_fn(lambda row: tf.boolean_mask(row, row > 0), rows, fn_output_signature=spec)
    kept = tf.map_fn(lambda row: tf.boolean_mask(row, row > 0), x, fn_output_signature=spec)
    counts = tf.map_fn(tf.range, lengths, fn_output_signature=tf.RaggedTensorSpec([None], i32, 0))
    return parts.values, above.row_lengths(), above.to_tensor(-1.0), kept.to_tensor(), counts.row_splits


@graph(("logits", f32, (5, 2, 4)), ("labels", i32, (2, 3)))
def selected_labels(logits, labels):
    """Losses of connectionist temporal classification whose labels a mask selects: the first of each row, and some or none behind it."""
    def loss(kept):
        at = tf.where(tf.concat([tf.constant([[True], [True]]), kept[:, 1:]], 1))
        values = tf.math.floormod(tf.gather_nd(labels, at), 3)
        sparse = tf.SparseTensor(at, values, tf.constant([2, 3], tf.int64))
        return tf.compat.v1.nn.ctc_loss(sparse, logits, tf.constant([5, 4]))
    return loss(labels > 1), loss(labels > 1000)


@graph(("x", f32, (4, 4)), ("at", i32, (1,)))
def condition_gradients(x, at):
    """Gradients of conditions, which keep values of the branch that was taken in optionals: of unlike shapes, nested, in loops and with
    loops inside, of a switch over three branches, second ones, and through a custom gradient."""
    w = weights(1, 4, 4)

    @tf.custom_gradient
    def clipped(y):
        z = tf.exp(y)
        return z, lambda dz: tf.clip_by_value(dz * z, -0.5, 0.5)

    def loop(y, rounds):
        return tf.while_loop(lambda i, y: i < rounds, lambda i, y: (i + 1, tf.tanh(y @ w) * y), [0, y])[1]

    def in_loop(y):
        def body(i, y):
            return i + 1, tf.cond(tf.equal(i % 2, at[0] % 2), lambda: tf.tanh(y @ w), lambda: loop(y, 2) - y[:1])
        return tf.while_loop(lambda i, y: i < 4, body, [0, y])[1]

    def rows(y):
        return tf.map_fn(lambda row: tf.sin(row) * row[0], y)

    found = []
    for at_i in (at[0] - 1, at[0] - 2, at[0]):
        yes = at_i > 0
        functions = [
            lambda y: tf.cond(yes, lambda: tf.sin(y) @ w, lambda: y[:, :2] @ tf.cos(w[:2])),
            lambda y: tf.cond(yes, lambda: tf.cond(at[0] > 1, lambda: tf.sin(y), lambda: tf.exp(y)), lambda: y),
            lambda y: tf.cond(yes, lambda: clipped(y) * y, lambda: tf.where(y > 0, y * y, 0.0)),
            lambda y: tf.cond(yes, lambda: loop(y, 3), lambda: y),
            lambda y: tf.cond(yes, lambda: y, lambda: rows(y)),
            lambda y: tf.switch_case(at_i, [lambda: tf.tanh(y @ w), lambda: tf.nn.softmax(y) * y, lambda: tf.gather(y, tf.concat([at, at, [0, 3]], 0))]),
        ]
        for f in functions:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(f(x) ** 2)
            found.append(tape.gradient(y, x))
        for f in functions[:3]:
            with tf.GradientTape() as second:
                second.watch(x)
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = tf.reduce_sum(f(x) ** 2)
                total = tf.reduce_sum(tape.gradient(y, x) ** 2)
            found.append(second.gradient(total, x))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(in_loop(x) ** 2)
    found.append(tape.gradient(y, x))
    spec = tf.TensorSpec([4, 4], f32)
    optional = tf.cond(at[0] > 1, lambda: tf.experimental.Optional.from_value(x), lambda: tf.experimental.Optional.empty(spec))
    found.append(tf.cond(optional.has_value(), optional.get_value, lambda: -x))
    return [tf.convert_to_tensor(t) for t in found]


@graph(("x", f32, (3, 4)), ("at", i32, (1,)))
def nested_loop_gradients(x, at):
    """Gradients of loops in loops, which keep lists of lists: with rounds that are known, fed, and others each time, three deep, of
    `tf.map_fn` in a loop and in `tf.scan`."""
    w = weights(1, 4, 4)

    def inner(y, rounds):
        return tf.while_loop(lambda j, y: j < rounds, lambda j, y: (j + 1, tf.sin(y) + x * tf.cast(j, f32)), [0, y], maximum_iterations=4)[1]

    def outer(rounds):
        def f(y):
            return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, inner(y, rounds(i))), [0, y])[1]
        return f

    def deep(y):
        return tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, outer(lambda k: i + k % 2)(y)), [0, y])[1]

    def mapped(y):
        return tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, tf.map_fn(lambda r: tf.tanh(tf.linalg.matvec(w, r)) * r, y)), [0, y])[1]

    def scanned(y):
        return tf.scan(lambda a, r: tf.map_fn(lambda q: tf.sin(q) * tf.reduce_sum(q * r), a @ w), y, initializer=tf.ones([2, 4]))

    found = []
    for f in (outer(lambda i: 3), outer(lambda i: i), outer(lambda i: at[0]), deep, mapped, scanned):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(f(x) ** 2)
        found.append(tape.gradient(y, x))
    return found


def feed(name, dtype, shape, seed):
    """A seeded input: normal reals; integers -20..20, `ids` 0..20, `mask` 0 or 1, `at` 1 or 2, a scalar 5, `back` -2."""
    rng, shape = np.random.default_rng(seed), tuple(abs(d) for d in shape)
    if name == "borders":
        return borders(*shape)
    if name == "lengths":
        return np.array([3, 1, 4, 1], dtype)
    if name == "zeros":
        return rng.choice(np.array([-1, -0.0, 0, 0.5], f32), shape)
    if dtype == f32:
        return rng.standard_normal(shape).astype(f32)
    if name == "back":
        return np.array(-2, dtype)
    low, high = {"ids": (0, 20), "mask": (0, 2), "at": (1, 3), "length": (1, 5)}.get(name, (-20, 20))
    return np.array(5, dtype) if shape == () else rng.integers(low, high, shape).astype(dtype)


def write(name):
    feeds, fn = GRAPHS[name]
    if hasattr(fn, "v1"):
        return write_v1(name, feeds, fn)
    specs = [tf.TensorSpec([d if d > 0 else None for d in shape], dtype, name=n) for n, dtype, shape in feeds]
    concrete = tf.function(fn, autograph=False).get_concrete_function(*specs)
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=False)
    keep(name, feeds, fn, frozen.graph.as_graph_def(), [t.name for t in frozen.outputs])


def write_v1(name, feeds, fn):
    tf.compat.v1.disable_control_flow_v2()
    with tf.Graph().as_default() as g:
        found = fn(*(tf.compat.v1.placeholder(dtype, shape, n) for n, dtype, shape in feeds))
        outs = [tf.identity(t, f"out{i}") for i, t in enumerate(found)]
        needed = tf.compat.v1.graph_util.extract_sub_graph(g.as_graph_def(), [t.op.name for t in outs])
    tf.compat.v1.enable_control_flow_v2()
    keep(name, feeds, fn, needed, [t.name for t in outs])


def keep(name, feeds, fn, graph_def, names):
    """Writes a graph with TensorFlow's answers."""
    values = {n + ":0": feed(n, dtype, shape, 100 + i) for i, (n, dtype, shape) in enumerate(feeds)}
    answers = {}
    with tf.Graph().as_default() as g:
        tf.import_graph_def(graph_def, name="")
        config = tf.compat.v1.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf.compat.v1.Session(graph=g, config=config) as session:
            answers = dict(zip(names, session.run(names, values)))
    folder = os.path.join(ROOT, name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "graph.pb"), "wb") as f:
        f.write(graph_def.SerializeToString(deterministic=True))
    np.savez(os.path.join(folder, "feeds.npz"), **values)
    np.savez(os.path.join(folder, "expect.npz"), **answers)
    with open(os.path.join(folder, "about.md"), "w") as f:
        f.write("# %s\n\n%s\n\nMade by `tools/make_graphs.py %s` with TensorFlow %s; `expect.npz` holds its answers to `feeds.npz`, "
                "Grappler and oneDNN off.\n" % (name, fn.__doc__, name, tf.__version__))
    ops = sorted({n.op for n in graph_def.node})
    print(name, len(graph_def.node), "nodes:", " ".join(ops))


if __name__ == "__main__":
    for name in sys.argv[1:] or GRAPHS:
        write(name)
