//! LAPACK's and BLAS's functions, which JAX calls on a CPU, by the factorisations that are here.
//!
//! The newer form has options as attributes (`lapack_sgetrf_ffi`), the older one as operands in front (`lapack_sgetrf`), with the
//! sizes, and further results that are scratch memory. Source: jaxlib's `lapack.py` and `lapack_kernels.cc`, which say what goes in and
//! comes out; LAPACK's documentation says what it is.
use super::{factor, jacobi};
use crate::diag::{Code, Error, Result};
use crate::hlo::attrs::{Foreign, Transpose};
use crate::hlo::{Builder, InstId, Op, Shape};
use crate::interp;
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::{DType, element_count};

/// What the calls of one function are told by operands in the older form, in front of the arrays.
const OLDER: &[(&str, &[&str])] = &[
    ("potrf", &["lower", "", ""]),
    ("getrf", &["", "", ""]),
    ("geqrf", &["", "", "", ""]),
    ("orgqr", &["", "", "", "", ""]),
    ("ungqr", &["", "", "", "", ""]),
    ("syevd", &["lower", "", ""]),
    ("gesdd", &["full", "vectors", "", "", "", ""]),
    ("trsm", &["left", "lower", "transposed", "unit", "", "", "", "alpha"]),
];

/// One call.
struct Call<'a> {
    b: &'a mut Builder,
    target: &'a str,
    arrays: &'a [InstId],
    options: Vec<(String, i64)>,
}

/// The value of a call of LAPACK, of the shape that it declares; `None` for calls of anything else.
///
/// # Errors
/// `Code::HloUnsupported` for functions that are not here, and for options and types that they are not here for.
pub fn lower(b: &mut Builder, call: &Foreign, operands: &[InstId], shape: &Shape) -> Result<Option<InstId>> {
    let Some(target) = call.attr("custom_call_target") else { return Ok(None) };
    let Some(name) = target.strip_prefix("lapack_").or_else(|| target.strip_prefix("blas_")) else { return Ok(None) };
    // The letter in front is the type, which the arrays have.
    let typed = name.trim_end_matches("_ffi").split_at_checked(1).map_or("", |(_, function)| function);
    let newer = name.ends_with("_ffi");
    let (mut options, mut first) = (Vec::new(), 0);
    if newer {
        options = entries(call.attr("backend_config").unwrap_or(""));
    } else if let Some((_, names)) = OLDER.iter().find(|row| row.0 == typed) {
        first = names.len();
        for (name, &operand) in names.iter().zip(operands).filter(|(name, _)| !name.is_empty()) {
            let value =
                interp::constant_value(b, operand).and_then(|t| t.get_f64(0).or(t.get_i64(0).map(|v| v as f64)));
            let told = || Error::user(Code::HloUnsupported, format!("`{target}` with a `{name}` that is not known"));
            options.push((name.to_string(), value.ok_or_else(told)? as i64));
        }
    }
    let arrays = operands.get(first..).unwrap_or_default();
    let mut call = Call { b, target, arrays, options };
    let results = match typed {
        "potrf" => call.cholesky()?,
        "getrf" => call.lu()?,
        "geqrf" => call.qr()?,
        "orgqr" | "ungqr" => call.reflections()?,
        "syevd" => call.eigen()?,
        "gesdd" => call.svd(shape)?,
        "trsm" => call.solve()?,
        _ => return Err(call.refuse("")),
    };
    finish(b, target, results, shape).map(Some)
}

/// `{name = 76 : ui8, ...}`; what is no whole number is left out.
fn entries(text: &str) -> Vec<(String, i64)> {
    let inner = text.trim().trim_start_matches('{').trim_end_matches('}');
    let one = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let value = value.split(':').next()?.trim().parse().ok()?;
        Some((name.trim().trim_matches('"').to_string(), value))
    };
    inner.split(',').filter_map(one).collect()
}

/// The results as the value that is declared: scratch memory behind them is zeros.
fn finish(b: &mut Builder, target: &str, results: Vec<InstId>, shape: &Shape) -> Result<InstId> {
    let declared: Vec<&Shape> = match shape {
        Shape::Tuple(parts) => parts.iter().collect(),
        one => vec![one],
    };
    let mut out = Vec::with_capacity(declared.len());
    for (i, want) in declared.iter().enumerate() {
        let id = match (results.get(i), want) {
            (Some(&id), _) => id,
            (None, Shape::Array(a)) => b.full(a.dtype, &a.dims, 0.0),
            (None, _) => return Err(Error::user(Code::HloInvalid, format!("`{target}` gives {want}"))),
        };
        if !b.shape(id).same(want) {
            let told = format!("result {i} of `{target}` is {}, where {want} is declared", b.shape(id));
            return Err(Error::user(Code::HloInvalid, told));
        }
        out.push(id);
    }
    Ok(if let Shape::Tuple(_) = shape { b.tuple(&out) } else { out[0] })
}

impl Call<'_> {
    fn refuse(&self, why: &str) -> Error {
        let told = format!("the custom call `{}`{why} has no lowering", self.target);
        Error::user(Code::HloUnsupported, told)
    }
    fn option(&self, name: &str) -> Option<i64> {
        self.options.iter().find(|o| o.0 == name).map(|o| o.1)
    }
    /// Whether a letter is the option's value; the older form has `older` as a truth value.
    fn letter(&self, name: &str, letter: u8, older: &str) -> bool {
        match self.option(name) {
            Some(value) => value == i64::from(letter),
            None => self.option(older).is_some_and(|v| v != 0),
        }
    }
    /// Array `i`, of matrices.
    fn matrices(&self, i: usize) -> Result<(InstId, Vec<u64>)> {
        let id = *self.arrays.get(i).ok_or_else(|| self.refuse(" without its arrays"))?;
        let dims = self.b.dims(id).to_vec();
        if dims.len() < 2 { Err(self.refuse(&format!(" of {dims:?}"))) } else { Ok((id, dims)) }
    }
    /// Zeros for all matrices: nothing failed.
    fn fine(&mut self, dims: &[u64]) -> InstId {
        self.b.full(DType::S32, &dims[..dims.len() - 2], 0.0)
    }
    /// The factor, and 1 where a matrix is not positive.
    fn cholesky(&mut self) -> Result<Vec<InstId>> {
        let (a, dims) = self.matrices(0)?;
        let lower = self.letter("uplo", b'L', "lower");
        let b = &mut *self.b;
        let factor = b.add_inst(Op::Cholesky { lower }, &[a]);
        let rank = dims.len();
        // A pivot that is not positive makes NaN of what follows.
        let (row, column) = (b.iota(DType::S32, &dims, rank - 2), b.iota(DType::S32, &dims, rank - 1));
        let diagonal = b.compare(Direction::Eq, row, column);
        let real = b.unary(ScalarOp::Real, factor);
        let bad = b.compare(Direction::Ne, real, real);
        let bad = b.binary(ScalarOp::And, diagonal, bad);
        let none = b.scalar(DType::Pred, 0.0);
        let bad = b.reduce(bad, none, ScalarOp::Or, &[rank - 2, rank - 1]);
        Ok(vec![factor, b.convert(bad, DType::S32)])
    }
    /// Both factors, the rows exchanged, and the place of the first zero pivot.
    fn lu(&mut self) -> Result<Vec<InstId>> {
        let (a, _) = self.matrices(0)?;
        let (factors, pivots) = factor::lu(self.b, a);
        let info = factor::first_zero(self.b, factors);
        Ok(vec![factors, pivots, info])
    }
    fn qr(&mut self) -> Result<Vec<InstId>> {
        let (a, dims) = self.matrices(0)?;
        let (packed, taus) = factor::packed_qr(self.b, a);
        Ok(vec![packed, taus, self.fine(&dims)])
    }
    fn reflections(&mut self) -> Result<Vec<InstId>> {
        let (a, dims) = self.matrices(0)?;
        let taus = *self.arrays.get(1).ok_or_else(|| self.refuse(" without its factors"))?;
        let reflections = self.b.dims(taus);
        if reflections.len() + 1 != dims.len() || reflections[reflections.len() - 1] > dims[dims.len() - 1] {
            return Err(self.refuse(&format!(" of {reflections:?} factors for {dims:?}")));
        }
        let q = factor::product_of_reflections(self.b, a, taus);
        Ok(vec![q, self.fine(&dims)])
    }
    /// Real matrices with one dimension for the batch.
    fn real(&mut self) -> Result<(InstId, Vec<u64>)> {
        let (a, dims) = self.matrices(0)?;
        if !matches!(self.b.dtype(a), DType::F32 | DType::F64) {
            return Err(self.refuse(&format!(" of {}", self.b.dtype(a))));
        }
        let count = element_count(&dims[..dims.len() - 2]).ok_or_else(|| self.refuse(" of so many"))?;
        let flat = [&[count], &dims[dims.len() - 2..]].concat();
        Ok((self.b.reshape(a, &flat), dims))
    }
    /// Vectors, values and whether anything failed.
    fn eigen(&mut self) -> Result<Vec<InstId>> {
        let (a, dims) = self.real()?;
        let [batch @ .., m, n] = &dims[..] else { return Err(self.refuse("")) };
        if m != n {
            return Err(self.refuse(&format!(" of {dims:?}")));
        }
        let lower = self.letter("uplo", b'L', "lower");
        let b = &mut *self.b;
        let a = if lower { a } else { b.transpose(a, &[0, 2, 1]) };
        let (values, vectors) = jacobi::eigen_of(b, a);
        let (values, vectors) = (b.reshape(values, &[batch, &[*n]].concat()), b.reshape(vectors, &dims));
        Ok(vec![vectors, values, self.fine(&dims)])
    }
    /// The matrix, values, left vectors as columns, right ones as rows, and whether anything failed.
    fn svd(&mut self, shape: &Shape) -> Result<Vec<InstId>> {
        let (a, dims) = self.real()?;
        let [batch @ .., m, n] = &dims[..] else { return Err(self.refuse("")) };
        let (m, n, p) = (*m, *n, (*m).min(*n));
        let vectors = match self.option("mode") {
            Some(mode) => mode != i64::from(b'N'),
            None => self.option("vectors").is_some_and(|v| v != 0),
        };
        let full = self.letter("mode", b'A', "full");
        let kept = self.arrays[0];
        let b = &mut *self.b;
        let turned = jacobi::turned_rows(b, a);
        let values = b.reshape(turned.sizes, &[batch, &[p]].concat());
        let (u, v) = if vectors {
            let (u, v) = turned.vectors(b);
            let (u, v) = if full { (jacobi::completed(b, u, m), jacobi::completed(b, v, n)) } else { (u, v) };
            (u, b.transpose(v, &[0, 2, 1]))
        } else {
            // Nobody reads them.
            let told = |i: usize| shape.as_tuple().and_then(|t| t.get(i)).and_then(Shape::as_array).cloned();
            let (Some(u), Some(v)) = (told(2), told(3)) else { return Err(self.refuse(" without vectors")) };
            (b.full(u.dtype, &u.dims, 0.0), b.full(v.dtype, &v.dims, 0.0))
        };
        let mut back = |x: InstId| {
            let own = b.dims(x).to_vec();
            let dims = [batch, &own[own.len() - 2..]].concat();
            b.reshape(x, &dims)
        };
        let (u, v) = (back(u), back(v));
        Ok(vec![kept, values, u, v, self.fine(&dims)])
    }
    fn solve(&mut self) -> Result<Vec<InstId>> {
        let ((a, _), (rhs, _)) = (self.matrices(0)?, self.matrices(1)?);
        // What the right sides are multiplied by is an option in the oldest form, and an operand behind them in the next one.
        let behind = self.arrays.get(2).map(|&id| interp::constant_value(self.b, id).and_then(|t| t.get_f64(0)));
        if self.option("alpha").is_some_and(|alpha| alpha != 1) || behind.is_some_and(|alpha| alpha != Some(1.0)) {
            return Err(self.refuse(" with a factor that is not known to be 1"));
        }
        let transpose_a = match self.option("trans_x").or(self.option("transposed")) {
            Some(84 | 1) => Transpose::Yes,
            Some(67 | 2) => Transpose::Adjoint,
            _ => Transpose::No,
        };
        let solve = Op::TriangularSolve {
            left_side: self.letter("side", b'L', "left"),
            lower: self.letter("uplo", b'L', "lower"),
            unit_diagonal: self.letter("diag", b'U', "unit"),
            transpose_a,
        };
        Ok(vec![self.b.add_inst(solve, &[a, rhs])])
    }
}
