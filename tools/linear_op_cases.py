"""Cases of linear algebra, sparse tensors, sets and special functions for tools/make_op_cases."""
import numpy as np
import tensorflow as tf

R = tf.raw_ops
F32, F64, C64, C128, I32, I64 = np.float32, np.float64, np.complex64, np.complex128, np.int32, np.int64
SPECIAL = np.array([0, 0.03, 0.1, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 5.5, 6.5, 7, 9, 14, 20, 33, 50, 70, 90, 1e3, 1e10, -0.25, -1, -3, -8, -40,
                    -0.0, np.nan, np.inf, -np.inf])
STRANGE = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1])


def random_matrices(seed, *shape, dtype=F32):
    draw = np.random.RandomState(seed)
    x = draw.uniform(-1, 1, shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * draw.uniform(-1, 1, shape)
    return x.astype(dtype)


def positive(seed, *shape, dtype=F32):
    """Matrices that are far from singular, with eigenvalues right of zero."""
    x = random_matrices(seed, *shape, dtype=dtype)
    return (x + 2.5 * np.eye(shape[-1])).astype(dtype)


# Ops that TensorFlow takes only in graphs of an older producer: the last version that has them.
OLD = {
    **dict.fromkeys(["BatchCholesky", "BatchCholeskyGrad", "BatchMatrixDeterminant", "BatchMatrixInverse", "BatchMatrixSolve", "BatchMatrixSolveLs",
                     "BatchMatrixTriangularSolve", "BatchSelfAdjointEigV2", "BatchSvd"], 12),
    **dict.fromkeys(["BatchMatrixBandPart", "BatchMatrixDiag", "BatchMatrixDiagPart", "BatchMatrixSetDiag"], 13),
    **dict.fromkeys(["BatchSelfAdjointEig", "SelfAdjointEig"], 10),
    "MatrixExponential": 26,
}


def be_old(version):
    """Makes the graph that is built one of an older producer."""
    old = tf.compat.v1.GraphDef(node=[tf.compat.v1.NodeDef(name="old", op="NoOp")])
    old.versions.producer = version
    tf.graph_util.import_graph_def(old, name="")


def answer(op, function, *arrays):
    """What TensorFlow gives for constants, in a graph of its own."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        if op in OLD:
            be_old(OLD[op])
        return session.run(function(*[tf.constant(a) for a in arrays]))


def within(x, want, bound):
    """Whether x is what it should be, relative to the largest of all: an iteration rounds otherwise each time."""
    want = np.asarray(want)
    real = np.float64 if x.dtype.as_numpy_dtype in (F64, C128) else np.float32
    largest = np.abs(want).max() if want.size else 0
    return tf.abs(x - want.astype(x.dtype.as_numpy_dtype)) <= tf.constant(bound * largest, real)


def bound(dtype):
    return 1e-12 if dtype in (F64, C128) else 1e-5


def cases(F, C):
    def pointwise(op, values, *types):
        return lambda: [getattr(R, op)(x=F(v)) for t in types for v in (values.astype(t), values[:0].astype(t), values[4:16].astype(t).reshape(3, 4))]

    def functions(op, *types):
        def make():
            out = []
            for t in types:
                for x in (positive(1, 4, 4, dtype=t), positive(2, 2, 3, 5, 5, dtype=t), positive(3, 1, 1, dtype=t), positive(4, 2, 2, dtype=t), random_matrices(5, 3, 2, 2, dtype=t)):
                    run = lambda input: getattr(R, op)(input=input)
                    y, want = run(F(x)), answer(op, run, x)
                    good = np.isfinite(want)
                    out += [within(tf.where(good, y, tf.zeros_like(y)), np.where(good, want, 0), bound(t)), tf.math.is_nan(tf.abs(y))]
                out += [run(F(x[:0])), run(F(np.zeros([0, 0], t)))]
            return out
        return make

    def lu():
        out = []
        for t in (F32, F64, C64, C128):
            for n in (1, 2, 4, 7):
                f, p = R.Lu(input=F(random_matrices(n, 2, n, n, dtype=t)), output_idx_type=tf.int64 if n == 2 else tf.int32)
                out += [f, p]
            out += list(R.Lu(input=F(np.zeros([0, 3, 3], t)), output_idx_type=tf.int32))
        return out

    def eig():
        out = []
        for t, o in ((F32, C64), (F64, C128), (C64, C64), (C128, C128)):
            for x in (random_matrices(3, 2, 4, 4, dtype=t), random_matrices(4, 6, 6, dtype=t), np.diag([3, 1, 2]).astype(t), random_matrices(9, 1, 1, dtype=t)):
                fed = F(x)
                e, v = R.Eig(input=fed, Tout=o, compute_v=True)
                only, _ = R.Eig(input=fed, Tout=o, compute_v=False)
                want = answer("Eig", lambda input: R.Eig(input=input, Tout=o, compute_v=True)[0], x)
                a = tf.cast(fed, o)
                rest = tf.abs(tf.matmul(a, v) - v * e[..., None, :])
                out += [within(e, want, bound(t)), within(only, want, bound(t)), rest < 20 * bound(t), within(tf.norm(tf.abs(v), axis=-2), np.ones(want.shape), bound(t))]
        return out

    def banded():
        out = []
        for t in (F32, F64, C64, C128):
            bands = random_matrices(7, 2, 3, 5, dtype=t)
            for lower in (True, False):
                x = bands.copy()
                x[:, 0 if lower else -1] += 3
                for adjoint in (True, False):
                    out.append(R.BandedTriangularSolve(matrix=F(x), rhs=F(random_matrices(8, 2, 5, 2, dtype=t)), lower=lower, adjoint=adjoint))
            out.append(R.BandedTriangularSolve(matrix=F(x[:1, 2:]), rhs=F(random_matrices(8, 3, 5, 1, dtype=t)), lower=False))
        return out

    def cholesky_gradient(op):
        def make():
            out = []
            for t in (F32, F64):
                x = positive(3, 2, 4, 4, dtype=t)
                factor = np.linalg.cholesky(x @ x.swapaxes(-1, -2)).astype(t)
                run = lambda l, grad: getattr(R, op)(l=l, grad=grad)
                grad = random_matrices(4, 2, 4, 4, dtype=t)
                out.append(within(run(F(factor), F(grad)), answer(op, run, factor, grad), bound(t)))
            return out
        return make

    def batch(op, **more):
        def make():
            out = []
            for t in (F32, F64):
                x = positive(3, 2, 4, 4, dtype=t)
                x = (x @ x.swapaxes(-1, -2)).astype(t)
                names = {"BatchMatrixSolve": ["matrix", "rhs"], "BatchMatrixTriangularSolve": ["matrix", "rhs"], "BatchMatrixSolveLs": ["matrix", "rhs"]}.get(op, ["input"])
                arrays = [x, random_matrices(5, 2, 4, 3, dtype=t)][:len(names)]
                run = lambda *a: getattr(R, op)(**dict(zip(names, a)), **more)
                first = lambda *a: (lambda y: y[0] if isinstance(y, (list, tuple)) else y)(run(*a))
                want = answer(op, first, *arrays)
                y = first(*map(F, arrays))
                if op in ("SelfAdjointEig", "BatchSelfAdjointEig"):
                    y, want = y[..., :1, :], want[..., :1, :]
                out.append(within(y, want, bound(t)))
            return out
        return make

    V = np.array([[0, 1], [0, 3], [2, 0], [2, 4], [3, 3]])

    def unravel():
        out = []
        for t in (I32, I64):
            for dims in (C([2, 4, 8], t), F([2, 4, 8], t)):
                out += [R.UnravelIndex(indices=F([0, 59, 17, 33, 22, 5], t), dims=dims), R.UnravelIndex(indices=F(59, t), dims=dims)]
        return out + [R.UnravelIndex(indices=F([-1, -7, 3], I32), dims=C([3, 4])), R.UnravelIndex(indices=F([6], I32), dims=C([9]))]

    def sparse(at, values, shape, dtype=F32):
        return F(np.array(at, I64).reshape(-1, len(shape))), F(np.array(values, dtype)), C(shape, I64)

    def joined(op):
        def make():
            out = []
            for t in (F32, F64, I32, I64, np.int8, np.uint8, np.float16):
                a, b = sparse(V, [1, 2, 3, 4, 5], [4, 5], t), sparse([[0, 1], [1, 1], [2, 4], [3, 4]], [9, 3, 1, 0], [4, 5], t)
                out += list(getattr(R, op)(a_indices=a[0], a_values=a[1], a_shape=a[2], b_indices=b[0], b_values=b[1], b_shape=b[2]))
            for a, b in ((V[:0], V), (V, V[:0]), (V[:0], V[:0]), (V, V)):
                values = np.array([np.nan, -1, 1, np.inf, 0], F32)
                a, b = sparse(a, values[:len(a)], [4, 5]), sparse(b, values[::-1][:len(b)], [4, 5])
                out += list(getattr(R, op)(a_indices=a[0], a_values=a[1], a_shape=F([4, 5], I64), b_indices=b[0], b_values=b[1], b_shape=b[2]))
            return out
        return make

    def reduced(op):
        def make():
            out = []
            at = [[0, 1, 0], [0, 3, 2], [2, 0, 1], [2, 3, 1], [3, 3, 0], [3, 3, 2]]
            for t in (F32, F64, I32, np.float16):
                for axes, keep in (([1], False), ([0, 2], True), ([-1], True), ([0, 1, 2], False), ([0, 1, 2], True), ([], False)):
                    x = sparse(at, [1, -2, 3, 4, 0, 6], [4, 5, 3], t)
                    out += list(getattr(R, op)(input_indices=x[0], input_values=x[1], input_shape=x[2], reduction_axes=C(axes), keep_dims=keep))
            x = sparse(at[:0], [], [4, 5, 3])
            return out + list(getattr(R, op)(input_indices=x[0], input_values=x[1], input_shape=x[2], reduction_axes=C([1])))
        return make

    def split():
        out = []
        for t in (F32, I64):
            for axis, parts in ((0, 2), (1, 2), (-1, 3), (1, 5), (0, 1)):
                x = sparse(V, [1, 2, 3, 4, 5], [4, 5], t)
                result = R.SparseSplit(split_dim=C(axis, I64), indices=x[0], values=x[1], shape=F([4, 5], I64), num_split=parts)
                out += [part for some in result for part in some]
        x = sparse(V[:0], [], [4, 5])
        return out + [part for some in R.SparseSplit(split_dim=C(1, I64), indices=x[0], values=x[1], shape=x[2], num_split=2) for part in some]

    def gradients():
        return [*R.SparseAddGrad(backprop_val_grad=F([1.5, -2, 3, 4]), a_indices=F([[0, 1], [2, 2]], I64), b_indices=F([[0, 1], [1, 0], [3, 3], [3, 4]], I64), sum_indices=F([[0, 1], [1, 0], [2, 2], [3, 4]], I64)),
                *R.SparseAddGrad(backprop_val_grad=F(np.zeros([0], F64)), a_indices=F([[0, 1], [2, 2]], I64), b_indices=F(np.zeros([0, 2], I64)), sum_indices=F(np.zeros([0, 2], I64)))]

    def slice_gradient():
        return [R.SparseSliceGrad(backprop_val_grad=F(np.array(g, t)), input_indices=F(V, I64), input_start=F([2, 0], I64), output_indices=F(np.array(at, I64).reshape(-1, 2)))
                for t in (F32, F64, I32) for g, at in (([7, 8, 9], [[0, 0], [0, 4], [1, 3]]), ([], []))]

    def segments(op):
        run = lambda g, i, s: list(getattr(R, op)(grad=F(g), indices=F(i), segment_ids=F(s), dense_output_dim0=C(9)))
        g = random_matrices(3, 4, 2)
        return lambda: [y for t in (F32, F64) for y in run(g.astype(t), np.array([5, 2, 5, 0, 2, 8], I32), np.array([0, 0, 1, 3, 3, 3], I32))] + run(g, np.array([3, 3], I64), np.array([1, 2], I64)) + run(g, np.zeros([0], I32), np.zeros([0], I32))

    SETS = [([[3, 1, 3], [2, 2, 2], [0, -5, 9]], [[1, 7], [5, 6], [9, 0]]), ([[1], [1]], [[2], [1]]), (np.zeros([2, 0], I32), [[4], [4]])]
    KINDS = ["a-b", "b-a", "intersection", "union"]
    INTS = [np.int8, np.int16, I32, I64, np.uint8, np.uint16]

    def dense_sets():
        out = [y for k in KINDS for a, b in SETS[:1 if k < "c" else 3] for y in R.DenseToDenseSetOperation(set1=F(np.array(a, I32)), set2=F(np.array(b, I32)), set_operation=k)]
        cube = np.arange(24).reshape(2, 3, 4) % 7
        out += [y for t in INTS for y in R.DenseToDenseSetOperation(set1=F(cube.astype(t)), set2=F((cube[:, ::-1, :2] + 1).astype(t)), set_operation="UNION")]
        return out

    def sparse_sets(dense):
        def make():
            out = []
            a, b = ([[0, 0], [0, 2], [1, 0], [2, 1], [2, 2]], [3, 3, 1, 8, 2]), ([[0, 0], [0, 1], [2, 0]], [4, 3, 8])
            for k in KINDS:
                for t in (I32,):
                    y = sparse(*b, [3, 4], t)
                    x = dict(set1=F(np.array([[3, 3], [1, 9], [8, 2]], t))) if dense else dict(zip(["set1_indices", "set1_values", "set1_shape"], sparse(*a, [3, 5], t)))
                    run = R.DenseToSparseSetOperation if dense else R.SparseToSparseSetOperation
                    out += list(run(**x, set2_indices=y[0], set2_values=y[1], set2_shape=y[2], set_operation=k))
            y = sparse([], [], [3, 4], I32)
            x = dict(set1=F(np.array([[3, 3], [1, 9], [8, 2]], I32))) if dense else dict(zip(["set1_indices", "set1_values", "set1_shape"], sparse(*a, [3, 5], I32)))
            return out + list(run(**x, set2_indices=y[0], set2_values=y[1], set2_shape=y[2], set_operation="union"))
        return make

    def set_size():
        return [R.SetSize(set_indices=x[0], set_values=x[1], set_shape=x[2]) for t in INTS for x in [sparse([[0, 0], [0, 2], [1, 0], [3, 1], [3, 2]], [3, 3, 1, 8, 2], [4, 5], t)]] \
            + [R.SetSize(set_indices=x[0], set_values=x[1], set_shape=x[2]) for x in [sparse([[0, 1, 0], [1, 0, 2], [1, 0, 3]], [3, 3, 1], [2, 2, 4], I32), sparse([], [], [2, 3], I32)]]

    COUNT = [dict(), dict(minlength=12), dict(maxlength=4), dict(minlength=2, maxlength=9), dict(binary=True)]

    def counts(run):
        """Counts of each kind, with weights and without."""
        def make():
            out = []
            for t, w, chosen in ((I32, F32, COUNT[:2]), (I64, I64, COUNT[2:4]), (I32, F64, COUNT[4:]), (I64, I32, COUNT[:1])):
                for given in chosen:
                    given = dict(given)
                    binary = given.pop("binary", False)
                    for weighted in (False, True)[:1 if binary else 2]:
                        weights = lambda shape: F((np.arange(np.prod(shape)) % 5 - 1).reshape(shape).astype(w)) if weighted else F(np.zeros([0], w))
                        out += list(run(t, weights, binary_output=binary, **given))
            return out
        return make

    def dense_count(t, weights, **more):
        a, b = np.array([[3, 0, 3], [7, 3, 7]]), np.array([5, 1, 5, 0])
        return [*R.DenseCountSparseOutput(values=F(a.astype(t)), weights=weights(a.shape), **more), *R.DenseCountSparseOutput(values=F(b.astype(t)), weights=weights(b.shape), **more)]

    def sparse_count(t, weights, **more):
        x = sparse(V, [3, 3, 7, 7, 1], [5, 5], t)
        one = sparse([[0], [2], [3]], [4, 4, 2], [5], t)
        return [*R.SparseCountSparseOutput(indices=x[0], values=x[1], dense_shape=x[2], weights=weights([5]), **more), *R.SparseCountSparseOutput(indices=one[0], values=one[1], dense_shape=one[2], weights=weights([3]), **more),
                *R.SparseCountSparseOutput(indices=one[0][:1], values=one[1][:1], dense_shape=one[2], weights=weights([1]), **more)]

    def ragged_count(t, weights, **more):
        return [*R.RaggedCountSparseOutput(splits=F([0, 2, 2, 5], I64), values=F(np.array([3, 3, 7, 1, 7], t)), weights=weights([5]), **more)]

    def nth():
        out = []
        for t in (F32, F64, I32, I64, np.uint8, np.float16):
            x = (np.array([[3, 1, 3, 7, 1], [0, 9, 5, 2, 2]]) - (0 if t is np.uint8 else 2)).astype(t)
            out += [R.NthElement(input=F(v), n=n, reverse=r) for v, n, r in ((x, C(2), False), (x, F(1, I32), True), (x[0], F(4, I32), False), (np.stack([x, x + 1]), C(0), True), (x[:0], C(0), False))]
        return out + [R.NthElement(input=F(np.array([[np.inf, -np.inf, 0.0, 1]], F32)), n=C(n)) for n in range(4)]

    def isotonic():
        out = []
        draw = np.random.RandomState(4)
        for t, o in ((F32, F32), (F64, F64), (I32, F64), (I64, F64)):
            for x in (draw.randint(-9, 9, [3, 8]), [[1, 2, 3, 4]], [[4, 3, 2, 1]], draw.randint(0, 3, [2, 2, 5]), [5], np.zeros([2, 0]), [2, 2, 2]):
                out += list(R.IsotonicRegression(input=F(np.array(x).astype(t)), output_dtype=tf.as_dtype(o)))
        return out

    def in_place(op):
        x = np.arange(12).reshape(4, 3)
        def make():
            out = []
            for t in (F32, F64, I32, np.float16):
                v = (np.arange(9).reshape(3, 3) * 7 % 5 + 1).astype(t)
                out += [getattr(R, op)(x=R.DeepCopy(x=F(x.astype(t))), i=F(i, I32), v=F(w)) for i, w in (([2, 0, 3], v), ([1, 1, 1], v), ([-1, 5, 2], v), (np.zeros([0], I32), v[:0]))]
            return out
        return make

    def fill_rows():
        out = []
        for t in (F32, I64):
            for ids, rows in (([0, 0, 2, 5], 7), ([3], 4), ([0, 1, 2], 3)):
                out += list(R.RaggedFillEmptyRows(value_rowids=F(np.array(ids, I64)), values=F((np.arange(len(ids)) + 1).astype(t)), nrows=C(rows, I64), default_value=F(np.array(-1, t))))
        return out

    return {
        "NthElement": nth, "IsotonicRegression": isotonic, **{op: in_place(op) for op in ("InplaceUpdate", "InplaceAdd", "InplaceSub")},
        "DeepCopy": lambda: [R.DeepCopy(x=F(STRANGE.astype(t))) for t in (F32, F64)], "GuaranteeConst": lambda: [R.GuaranteeConst(input=F(STRANGE.astype(t))) for t in (F32, F64)],
        "RaggedFillEmptyRows": fill_rows,
        "RaggedFillEmptyRowsGrad": lambda: [y for t in (F32, F64) for y in R.RaggedFillEmptyRowsGrad(reverse_index_map=F([2, 1, 0], I64), grad_values=F(np.array([1, 2.5, 3, 4, 5], t)))],
        **{op: pointwise(op, SPECIAL, F32, F64, np.float16) for op in ("BesselJ0", "BesselJ1", "BesselY0", "BesselY1", "BesselK0", "BesselK0e", "BesselK1", "BesselK1e")},
        **{op: pointwise(op, SPECIAL, F32, F64) for op in ("Dawsn", "Expint", "FresnelCos", "FresnelSin", "Spence")},
        "MatrixSquareRoot": functions("MatrixSquareRoot", F32, F64, C64, C128), "MatrixExponential": functions("MatrixExponential", F32, F64, C64, C128),
        "MatrixLogarithm": functions("MatrixLogarithm", C64, C128),
        "Lu": lu, "Eig": eig, "BandedTriangularSolve": banded,
        **{op: cholesky_gradient(op) for op in ("CholeskyGrad", "BatchCholeskyGrad")},
        **{op: batch(op) for op in ("BatchCholesky", "BatchMatrixDeterminant", "BatchMatrixInverse", "BatchMatrixSolve", "BatchMatrixTriangularSolve", "BatchSelfAdjointEig", "SelfAdjointEig", "BatchSelfAdjointEigV2", "BatchSvd")},
        "BatchMatrixSolveLs": batch("BatchMatrixSolveLs", l2_regularizer=0.25),
        "BatchMatrixDiag": lambda: [R.BatchMatrixDiag(diagonal=F(random_matrices(1, 2, 3)))], "BatchMatrixDiagPart": lambda: [R.BatchMatrixDiagPart(input=F(random_matrices(1, 2, 3, 4)))],
        "BatchMatrixSetDiag": lambda: [R.BatchMatrixSetDiag(input=F(random_matrices(1, 2, 3, 4)), diagonal=F(random_matrices(2, 2, 3)))],
        "BatchMatrixBandPart": lambda: [R.BatchMatrixBandPart(input=F(random_matrices(1, 2, 5, 4)), num_lower=C(l, I64), num_upper=C(u, I64)) for l, u in ((1, 0), (-1, 2), (2, -1))],
        "UnravelIndex": unravel,
        **{op: joined(op) for op in ("SparseSparseMaximum", "SparseSparseMinimum")}, **{op: reduced(op) for op in ("SparseReduceSumSparse", "SparseReduceMaxSparse")},
        "SparseSplit": split, "SparseAddGrad": gradients, "SparseSliceGrad": slice_gradient,
        **{f"SparseSegment{kind}GradV2": segments(f"SparseSegment{kind}GradV2") for kind in ("Sum", "Mean", "SqrtN")},
        "DenseToDenseSetOperation": dense_sets, "DenseToSparseSetOperation": sparse_sets(True), "SparseToSparseSetOperation": sparse_sets(False), "SetSize": set_size,
        "DenseCountSparseOutput": counts(dense_count), "SparseCountSparseOutput": counts(sparse_count), "RaggedCountSparseOutput": counts(ragged_count),
    }
