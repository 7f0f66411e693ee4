"""Cases of CSR matrices for tools/make_op_cases."""
import numpy as np
import tensorflow as tf

R = tf.raw_ops
TYPES = np.float32, np.float64, np.complex64, np.complex128
I64 = np.int64
# Places whose columns are not in order, one twice, an empty row; two matrices, and an empty one between two.
FLAT = [[0, 2], [0, 0], [2, 3], [2, 0], [2, 1], [3, 3]]
TWICE = [[0, 1], [0, 1], [1, 0]]
STACKED = [[0, 1, 1], [0, 1, 3], [0, 2, 0], [2, 0, 2], [2, 2, 1]]
STRANGE = [1, -2, np.inf, 4, np.nan, 0]


def numbers(count, dtype, seed=1):
    draw = np.random.RandomState(seed)
    x = draw.uniform(-2, 2, count)
    return (x + 1j * draw.uniform(-2, 2, count) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def cases(F, C):
    """The cases by op; F makes a fed tensor, C a constant."""
    def matrix(places, values, dims):
        """A matrix of these elements."""
        places = np.array(places, I64).reshape(len(places), len(dims))
        return R.SparseTensorToCSRSparseMatrix(indices=F(places, I64), values=F(values), dense_shape=C(dims, I64))

    def matrices():
        """Matrices of each type, with their types."""
        for t in TYPES:
            yield matrix(FLAT, numbers(6, t), [4, 5]), t
            yield matrix(TWICE, numbers(3, t), [2, 3]), t
            yield matrix(STACKED, numbers(5, t), [3, 3, 4]), t
        yield matrix(FLAT, np.array(STRANGE, np.float32), [4, 5]), np.float32
        yield matrix([], np.zeros([0], np.float32), [2, 3]), np.float32

    sparse = lambda m, t: list(R.CSRSparseMatrixToSparseTensor(sparse_matrix=m, type=t))
    dense = lambda m, t: [R.CSRSparseMatrixToDense(sparse_input=m, type=t)]
    each = lambda f: lambda: [y for m, t in matrices() for y in f(m, t)]

    def from_dense():
        out = []
        for t in TYPES:
            for places, dims in ((sorted(FLAT), (4, 5)), (STACKED, (3, 3, 4))):
                x = F(numbers(int(np.prod(dims)), t).reshape(dims))
                out += sparse(R.DenseToCSRSparseMatrix(dense_input=x, indices=F(places, I64)), t)
        return out

    def components():
        out = []
        for t in TYPES:
            for places, dims in ((FLAT, [4, 5]), (TWICE, [2, 3])):
                out += list(R.CSRSparseMatrixComponents(csr_sparse_matrix=matrix(places, numbers(len(places), t), dims), index=C(0), type=t))
        return out

    def transposes():
        out = []
        for conjugate in (False, True):
            for m, t in matrices():
                out += sparse(R.SparseMatrixTranspose(input=m, conjugate=conjugate, type=t), t)
        return out

    def products():
        out = []
        for t in TYPES:
            square, stack = numbers(16, t, 3).reshape(4, 4), numbers(36, t, 4).reshape(3, 4, 3)
            of = lambda **flags: R.SparseMatrixMatMul(a=matrix(FLAT, numbers(6, t), [4, 4]), b=F(square), **flags)
            out += [of(), of(transpose_a=True), of(adjoint_a=True), of(transpose_b=True), of(adjoint_b=True), of(transpose_output=True), of(conjugate_output=True)]
            out.append(R.SparseMatrixMatMul(a=matrix(FLAT, numbers(6, t), [4, 5]), b=F(numbers(10, t).reshape(5, 2))))
            out.append(R.SparseMatrixMatMul(a=matrix(TWICE, numbers(3, t), [2, 4]), b=F(square)))
            out.append(R.SparseMatrixMatMul(a=matrix(STACKED, numbers(5, t), [3, 3, 4]), b=F(stack)))
        strange = np.ones([4, 2], np.float32)
        strange[1] = np.nan
        out.append(R.SparseMatrixMatMul(a=matrix([[0, 0], [2, 3]], np.array([1, np.inf], np.float32), [3, 4]), b=F(strange)))
        return out + [R.SparseMatrixMatMul(a=matrix([], np.zeros([0], np.float32), [3, 4]), b=F(strange))]

    def sparse_products():
        out = []
        for t in TYPES:
            for flags in ({}, {"transpose_a": True}, {"transpose_b": True}, {"adjoint_a": True}, {"adjoint_b": True}):
                a, b = (matrix(sorted(FLAT), numbers(6, t, seed), [4, 4]) for seed in (1, 2))
                out += sparse(R.SparseMatrixSparseMatMul(a=a, b=b, type=t, **flags), t)
            stack = matrix(STACKED, numbers(5, t), [3, 3, 4])
            out += dense(R.SparseMatrixSparseMatMul(a=stack, b=stack, transpose_b=True, type=t), t)
        a = matrix(sorted(FLAT), np.array([1, 0, np.inf, 4, np.nan, 0], np.float32), [4, 4])
        return out + sparse(R.SparseMatrixSparseMatMul(a=a, b=a, type=np.float32), np.float32)

    return {
        "SparseTensorToCSRSparseMatrix": each(dense), "CSRSparseMatrixToDense": each(dense), "CSRSparseMatrixToSparseTensor": each(sparse),
        "SparseMatrixNNZ": each(lambda m, t: [R.SparseMatrixNNZ(sparse_matrix=m)]), "DenseToCSRSparseMatrix": from_dense,
        "CSRSparseMatrixComponents": components, "SparseMatrixTranspose": transposes, "SparseMatrixMatMul": products,
        "SparseMatrixSparseMatMul": sparse_products,
    }
