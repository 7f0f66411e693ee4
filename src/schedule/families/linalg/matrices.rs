//! Batches of matrices, as factorizations and triangular solves read and write them: the last two dimensions are a matrix, the others a batch.
//!
//! Numbers narrower than 32 bits are computed in `f32` and rounded once. Sums are taken term after term, as many at a time as
//! there are columns side by side in some vectors, so that none waits for the one before.
use crate::hlo::ArrayShape;
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::vectors::{VectorRun, VectorWidth};
use crate::tensor::DTypeClass;

/// Tiles of neighboring columns whose sums are computed at once.
#[derive(Clone, Copy, Debug)]
pub(in crate::schedule) struct ColumnBlock {
    /// The first column of the first tile.
    pub first: u64,
    /// Number of tiles.
    pub tiles: u64,
    /// Vectors per tile.
    pub vectors: u64,
    /// Lanes per vector.
    pub lanes: u64,
}

impl ColumnBlock {
    /// Columns per tile.
    pub(in crate::schedule) fn columns(&self) -> u64 {
        self.vectors * self.lanes
    }
    /// Covers `columns` with tiles of `vectors` vectors, then of one, then of narrower vectors.
    pub(in crate::schedule) fn cover_columns(columns: u64, vectors: u64, lanes: u64) -> Vec<ColumnBlock> {
        let wide = ColumnBlock { first: 0, tiles: columns / (vectors * lanes), vectors, lanes };
        let done = wide.tiles * wide.columns();
        let one = |c: VectorRun| ColumnBlock { first: done + c.first, tiles: c.blocks, vectors: 1, lanes: c.lanes };
        let rest = VectorWidth { lanes, masks: false }.split(columns - done).into_iter().map(one);
        std::iter::once(wide).filter(|side| side.tiles > 0).chain(rest).collect()
    }
}

/// `sum - a·b`.
pub(in crate::schedule) fn subtract_product(k: &mut Kernel, sum: ExprId, a: ExprId, b: ExprId, dtype: DType) -> ExprId {
    if dtype.class() == DTypeClass::Complex {
        let product = k.add_op(ScalarOp::Multiply, &[a, b], dtype);
        return k.add_op(ScalarOp::Subtract, &[sum, product], dtype);
    }
    let a = k.add_op(ScalarOp::Negate, &[a], dtype);
    k.add_op(ScalarOp::Fma, &[a, b, sum], dtype)
}

/// The complex conjugate; a real number is its own.
pub(in crate::schedule) fn conjugate(k: &mut Kernel, x: ExprId, dtype: DType) -> ExprId {
    if dtype.class() != DTypeClass::Complex {
        return x;
    }
    let part = dtype.real_part();
    let (re, im) = (k.add_op(ScalarOp::Real, &[x], part), k.add_op(ScalarOp::Imag, &[x], part));
    let im = k.add_op(ScalarOp::Negate, &[im], part);
    k.add_op(ScalarOp::Complex, &[re, im], dtype)
}

/// The square root of the real part of `x`.
pub(in crate::schedule) fn sqrt_of_real(k: &mut Kernel, x: ExprId, dtype: DType) -> ExprId {
    if dtype.class() != DTypeClass::Complex {
        return k.add_op(ScalarOp::Sqrt, &[x], dtype);
    }
    let part = dtype.real_part();
    let (re, zero) = (k.add_op(ScalarOp::Real, &[x], part), constant_of_number(k, part, 0.0));
    let root = k.add_op(ScalarOp::Sqrt, &[re], part);
    k.add_op(ScalarOp::Complex, &[root, zero], dtype)
}

/// A result array seen as a batch of matrices.
pub(in crate::schedule) struct Matrices {
    pub buf: BufId,
    pub dims: Vec<u64>,
    /// A loop variable for each batch axis.
    pub batch: Vec<VarId>,
    /// Element type in memory.
    pub stored: DType,
    /// Element type of the computation.
    pub wide: DType,
}

impl Matrices {
    /// Views the array of `shape` in the buffer `out` as a batch of matrices; each axis of the batch has a loop variable of kernel `k`.
    pub(in crate::schedule) fn new(k: &mut Kernel, shape: &ArrayShape, out: &ValueBuffers) -> Result<Matrices> {
        let batch = shape.dims[..shape.rank() - 2].iter().map(|&n| k.add_var(n)).collect();
        let (stored, wide) = (shape.dtype, shape.dtype.compute_type());
        Ok(Matrices { buf: out.dense_buffer()?, dims: shape.dims.clone(), batch, stored, wide })
    }
    /// The coordinates of an element.
    pub(in crate::schedule) fn element_coordinates(&self, row: &Index, column: &Index) -> Vec<Index> {
        let batch = self.batch.iter().map(|&v| Index::var(v));
        batch.chain([row.clone(), column.clone()]).collect()
    }
    /// The offset of an element in the buffer.
    pub(in crate::schedule) fn index(&self, row: &Index, column: &Index) -> Index {
        linear_index(&self.element_coordinates(row, column), &self.dims)
    }
    /// Loads an element, converted to the type in which matrices are computed.
    pub(in crate::schedule) fn load(&self, k: &mut Kernel, row: &Index, column: &Index) -> ExprId {
        let x = k.add_load(self.buf, linear_index(&self.element_coordinates(row, column), &self.dims));
        convert(k, x, self.stored, self.wide)
    }
    /// Stores an element, converted to the type of the matrix in memory.
    pub(in crate::schedule) fn store(&self, k: &mut Kernel, row: &Index, column: &Index, value: ExprId) -> Stmt {
        let value = convert(k, value, self.wide, self.stored);
        Stmt::Store { buf: self.buf, index: self.index(row, column), value }
    }
}
