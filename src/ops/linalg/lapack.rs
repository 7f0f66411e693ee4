//! Custom calls of LAPACK and BLAS functions, which JAX makes on CPUs, lowered to the factorizations of this module.
//!
//! The newer form of a call has options as attributes (`lapack_sgetrf_ffi`). The older one has them as leading operands
//! (`lapack_sgetrf`), with the sizes, and returns scratch memory as further results. Source: jaxlib's `lapack.py` and
//! `lapack_kernels.cc` for operands and results, LAPACK's documentation for their meaning.
use super::{eigenvectors, factor, hessenberg, jacobi, schur, tridiagonal};
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::hlo::symbolic::{Builder, InstId, Op, Shape};
use crate::hlo::symbolic::{Dim, ForeignOp, Transpose};
use crate::interp;
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::product;
use crate::tensor::DType;

/// Options that calls of the older form pass as leading operands, by function; operands without a name are skipped.
const OLDER: &[(&str, &[&str])] = &[
    ("potrf", &["lower", "", ""]),
    ("getrf", &["", "", ""]),
    ("geqrf", &["", "", "", ""]),
    ("orgqr", &["", "", "", "", ""]),
    ("ungqr", &["", "", "", "", ""]),
    ("syevd", &["lower", "", ""]),
    ("heevd", &["lower", "", ""]),
    ("gesdd", &["full", "vectors", "", "", "", ""]),
    ("trsm", &["left", "lower", "transposed", "unit", "", "", "", "alpha"]),
];

/// Custom call of a LAPACK function, with its parsed options.
struct Call<'a> {
    b: &'a mut Builder,
    target: &'a str,
    arrays: &'a [InstId],
    options: Vec<(String, i64)>,
}

/// Functions that are lowered, without the letter of their element type.
const KNOWN: &[&str] = &[
    "potrf", "getrf", "geqrf", "orgqr", "ungqr", "geqp3", "ormqr", "unmqr", "syevd", "heevd", "sytrd", "hetrd",
    "gehrd", "gees", "geev", "gesdd", "gesvd", "gtsv", "trsm",
];

/// The function of LAPACK or BLAS that a custom call names, without the letter of its element type; empty if the name has none.
fn function_name(target: &str) -> Option<&str> {
    let name = target.strip_prefix("lapack_").or_else(|| target.strip_prefix("blas_"))?;
    Some(name.trim_end_matches("_ffi").split_at_checked(1).map_or("", |(_, function)| function))
}

/// Whether custom calls of this name are lowered, for some options and types at least.
pub fn is_known(target: &str) -> bool {
    function_name(target).is_some_and(|name| KNOWN.contains(&name))
}

/// Result of a custom call of LAPACK, of the shape that the call declares; `None` for other custom calls.
///
/// # Errors
/// `Code::HloUnsupported` for unsupported functions, options or types.
pub fn lower_lapack_call(
    b: &mut Builder,
    call: &ForeignOp,
    operands: &[InstId],
    shape: &Shape,
) -> Result<Option<InstId>> {
    let Some(target) = call.attr("custom_call_target") else { return Ok(None) };
    // The leading letter is the element type, which the operands also have.
    let Some(typed) = function_name(target) else { return Ok(None) };
    let newer = target.ends_with("_ffi");
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
        "geqp3" => call.pivoted_qr()?,
        "ormqr" | "unmqr" => call.reflected()?,
        "syevd" | "heevd" => call.eigen()?,
        "sytrd" | "hetrd" => call.tridiagonal()?,
        "gehrd" => call.hessenberg()?,
        "gees" => call.schur()?,
        "geev" => call.general_eigen()?,
        "gesdd" | "gesvd" => call.svd(shape)?,
        "gtsv" => call.three_diagonals()?,
        "trsm" => call.solve()?,
        _ => return Err(call.refuse("")),
    };
    finish(b, target, results, shape).map(Some)
}

/// Options in a text such as `{name = 76 : ui8, ...}`; those that are neither integers nor truth values are skipped.
fn entries(text: &str) -> Vec<(String, i64)> {
    let inner = text.trim().trim_start_matches('{').trim_end_matches('}');
    let one = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let value = match value.split(':').next()?.trim() {
            "true" => 1,
            "false" => 0,
            number => number.parse().ok()?,
        };
        Some((name.trim().trim_matches('"').to_string(), value))
    };
    inner.split(',').filter_map(one).collect()
}

/// Results of a call as the tuple that it declares; scratch memory becomes zeros.
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
        if !b.shape(id).same_type_and_dims(want) {
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
    /// Whether an option has this letter as its value; the older form has a truth value named `older` instead.
    fn letter(&self, name: &str, letter: u8, older: &str) -> bool {
        match self.option(name) {
            Some(value) => value == i64::from(letter),
            None => self.option(older).is_some_and(|v| v != 0),
        }
    }
    /// Operand `i`, a batch of matrices, and its sizes.
    fn matrices(&self, i: usize) -> Result<(InstId, Vec<Dim>)> {
        let id = *self.arrays.get(i).ok_or_else(|| self.refuse(" without its arrays"))?;
        let dims = self.b.dims(id).to_vec();
        if dims.len() < 2 { Err(self.refuse(&format!(" of {dims:?}"))) } else { Ok((id, dims)) }
    }
    /// Status `info` for all matrices: 0, nothing failed.
    fn fine(&mut self, dims: &[Dim]) -> InstId {
        self.b.full(DType::S32, &dims[..dims.len() - 2], 0.0)
    }
    /// `potrf`: the Cholesky factor, and 1 where a matrix is not positive definite.
    fn cholesky(&mut self) -> Result<Vec<InstId>> {
        let (a, dims) = self.matrices(0)?;
        let lower = self.letter("uplo", b'L', "lower");
        let b = &mut *self.b;
        let factor = b.add_inst(Op::Cholesky { lower }, &[a]);
        let rank = dims.len();
        // A pivot that is not positive makes the elements behind it NaN.
        let (row, column) = (b.iota(DType::S32, &dims, rank - 2), b.iota(DType::S32, &dims, rank - 1));
        let diagonal = b.compare(Direction::Eq, row, column);
        let real = b.unary(ScalarOp::Real, factor);
        let bad = b.compare(Direction::Ne, real, real);
        let bad = b.binary(ScalarOp::And, diagonal, bad);
        let none = b.scalar(DType::Pred, 0.0);
        let bad = b.reduce(bad, none, ScalarOp::Or, &[rank - 2, rank - 1]);
        Ok(vec![factor, b.convert(bad, DType::S32)])
    }
    /// `getrf`: both LU factors, the row exchanges, and the position of the first zero pivot.
    fn lu(&mut self) -> Result<Vec<InstId>> {
        let (a, _) = self.matrices(0)?;
        let (factors, pivots) = factor::lu(self.b, a);
        let info = factor::first_zero_on_diagonal(self.b, factors);
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
    /// First operand with a single batch dimension, and its original sizes.
    fn flat(&mut self) -> Result<(InstId, Vec<Dim>)> {
        let (a, dims) = self.matrices(0)?;
        if !matches!(self.b.dtype(a), DType::F32 | DType::F64 | DType::C64 | DType::C128) {
            return Err(self.refuse(&format!(" of {}", self.b.dtype(a))));
        }
        let count = product(&dims[..dims.len() - 2]).ok_or_else(|| self.refuse(" of so many"))?;
        let flat = [&dims![count][..], &dims[dims.len() - 2..]].concat();
        Ok((self.b.reshape(a, &flat), dims))
    }
    /// First operand, square matrices with a single batch dimension, its original sizes, and the order of the matrices.
    fn square(&mut self) -> Result<(InstId, Vec<Dim>, Dim)> {
        let (a, dims) = self.flat()?;
        match dims[..] {
            [.., m, n] if m == n => Ok((a, dims, n)),
            _ => Err(self.refuse(&format!(" of {dims:?}"))),
        }
    }
    /// Arrays with the call's batch dimensions in place of the single one.
    fn unflat(&mut self, dims: &[Dim], parts: Vec<InstId>) -> Vec<InstId> {
        let back = |x: InstId| {
            let own = [&dims[..dims.len() - 2], &self.b.dims(x)[1..]].concat();
            self.b.reshape(x, &own)
        };
        parts.into_iter().map(back).collect()
    }
    /// `geqp3`: the factors, the column order counted from 1, and the factors of the reflections.
    fn pivoted_qr(&mut self) -> Result<Vec<InstId>> {
        let (a, _) = self.matrices(0)?;
        let order = *self.arrays.get(1).ok_or_else(|| self.refuse(" without its columns"))?;
        // Columns that the call marks to come first would not be free to be pivoted.
        let told = interp::constant_value(self.b, order);
        if !told.is_some_and(|t| (0..t.len()).all(|i| t.get_i64(i) == Some(0))) {
            return Err(self.refuse(" with columns that may be told to come first"));
        }
        let (packed, order, taus) = factor::pivoted_qr(self.b, a);
        Ok(vec![packed, order, taus])
    }
    /// `ormqr`: a matrix multiplied by a product of reflections.
    fn reflected(&mut self) -> Result<Vec<InstId>> {
        let ((a, dims), (c, _)) = (self.matrices(0)?, self.matrices(2)?);
        let taus = self.arrays[1];
        let (left, turned) = (self.option("left") != Some(0), self.option("transpose") == Some(1));
        let count = self.b.dims(taus).last().copied().unwrap_or(Dim::from(0));
        if self.b.rank(taus) + 1 != dims.len() || self.b.rank(c) != dims.len() || count > dims[dims.len() - 1] {
            return Err(self.refuse(&format!(" of {dims:?}")));
        }
        let rank = dims.len();
        let rows = self.b.dims(c)[if left { rank - 2 } else { rank - 1 }];
        if rows != dims[rank - 2] || self.b.dims(c)[..rank - 2] != dims[..rank - 2] {
            return Err(self.refuse(&format!(" of {dims:?}")));
        }
        let b = &mut *self.b;
        // Multiplication from the right is the adjoint of a multiplication of the adjoint from the left.
        let x = if left { c } else { super::adjoint(b, c) };
        let y = factor::apply_reflections(b, a, taus, x, turned == left);
        let y = if left { y } else { super::adjoint(b, y) };
        Ok(vec![y, self.fine(&dims)])
    }
    /// `sytrd`: the matrix with the reflection vectors, diagonal and off-diagonal, the factors of the reflections, and the
    /// status.
    fn tridiagonal(&mut self) -> Result<Vec<InstId>> {
        let (a, dims, _) = self.square()?;
        let lower = self.letter("uplo", b'L', "lower");
        let t = if lower {
            hessenberg::tridiagonal_from_lower(self.b, a)
        } else {
            hessenberg::tridiagonal_from_upper(self.b, a)
        };
        let mut parts = self.unflat(&dims, vec![t.packed, t.diagonal, t.beside, t.taus]);
        parts.push(self.fine(&dims));
        Ok(parts)
    }
    /// `gehrd`: the matrix with the reflection vectors, the factors of the reflections, and the status.
    fn hessenberg(&mut self) -> Result<Vec<InstId>> {
        let (a, dims, n) = self.square()?;
        if self.option("low").is_some_and(|low| low > 1)
            || self.option("high").is_some_and(|high| high != n.guarded_value())
        {
            return Err(self.refuse(" of a part of the matrix"));
        }
        let (packed, taus) = hessenberg::packed_hessenberg(self.b, a);
        let mut parts = self.unflat(&dims, vec![packed, taus]);
        parts.push(self.fine(&dims));
        Ok(parts)
    }
    /// `gees`: the Schur form and vectors, the eigenvalues, the number of selected ones, and the number of missing ones.
    fn schur(&mut self) -> Result<Vec<InstId>> {
        let (a, dims, n) = self.square()?;
        if self.letter("sort", b'S', "sort") {
            return Err(self.refuse(" with an order of eigenvalues"));
        }
        let (dtype, whole) = (self.b.dtype(a), vec![n, n]);
        let is_complex = dtype.is_complex();
        let mut types = vec![(dtype, whole.clone()), (dtype, whole), (dtype, vec![n])];
        types.extend((!is_complex).then(|| (dtype, vec![n])));
        types.push((DType::S32, vec![]));
        let parts = eigenvectors::for_each_matrix(self.b, "schur", a, &types, |b, a| {
            let form = schur::schur(b, a);
            let mut parts = vec![form.t, form.z];
            match is_complex {
                true => parts.push(super::diagonal(b, form.t)),
                false => parts.extend(eigenvectors::eigenvalue_parts(b, form.t)),
            }
            parts.push(form.failed);
            parts
        });
        let mut parts = self.unflat(&dims, parts);
        let chosen = self.fine(&dims);
        parts.insert(parts.len() - 1, chosen);
        Ok(parts)
    }
    /// `geev`: the eigenvalues, left and right eigenvectors as columns, and the number of missing eigenvalues.
    fn general_eigen(&mut self) -> Result<Vec<InstId>> {
        let (a, dims, n) = self.square()?;
        let wanted = |name| self.letter(name, b'V', "vectors");
        let wanted = eigenvectors::EigenvectorSides { left: wanted("compute_left"), right: wanted("compute_right") };
        let dtype = self.b.dtype(a);
        let complex = if matches!(dtype, DType::F32 | DType::C64) { DType::C64 } else { DType::C128 };
        let mut types = vec![(dtype, vec![n]); if dtype.is_complex() { 1 } else { 2 }];
        types.extend([(complex, vec![n, n]), (complex, vec![n, n]), (DType::S32, vec![])]);
        let parts = eigenvectors::for_each_matrix(self.b, "eigen", a, &types, |b, a| {
            eigenvectors::eigendecomposition(b, a, &wanted)
        });
        Ok(self.unflat(&dims, parts))
    }
    /// `gtsv`: the diagonals, the solutions in place of the right-hand sides, and the status. Each diagonal has as many
    /// elements as there are rows: the first element of the subdiagonal and the last one of the superdiagonal are unused. The
    /// diagonals that LAPACK returns are scratch memory.
    fn three_diagonals(&mut self) -> Result<Vec<InstId>> {
        let &[lower, main, upper, right] = self.arrays else { return Err(self.refuse(" without its arrays")) };
        let (_, dims) = self.matrices(3)?;
        let [batch @ .., m, _] = &dims[..] else { return Err(self.refuse("")) };
        let line = [batch, &[*m]].concat();
        if [lower, main, upper].iter().any(|&x| self.b.dims(x) != line) {
            return Err(self.refuse(&format!(" of {dims:?}")));
        }
        let solved = tridiagonal::solve_tridiagonal(self.b, [upper, main, lower], right, true);
        Ok(vec![lower, main, upper, solved, self.fine(&dims)])
    }
    /// `syevd`: eigenvectors, eigenvalues and status.
    fn eigen(&mut self) -> Result<Vec<InstId>> {
        let (a, dims, _) = self.square()?;
        let lower = self.letter("uplo", b'L', "lower");
        let b = &mut *self.b;
        let a = if lower { a } else { super::adjoint(b, a) };
        let (values, vectors) = jacobi::hermitian_eigen(b, a);
        let mut parts = self.unflat(&dims, vec![vectors, values]);
        parts.push(self.fine(&dims));
        Ok(parts)
    }
    /// `gesdd`: the matrix, singular values, left vectors as columns, right vectors as rows, and status.
    fn svd(&mut self, shape: &Shape) -> Result<Vec<InstId>> {
        let (a, dims) = self.flat()?;
        let [.., m, n] = &dims[..] else { return Err(self.refuse("")) };
        let (m, n) = (*m, *n);
        let vectors = match self.option("mode") {
            Some(mode) => mode != i64::from(b'N'),
            None => self.option("vectors").or(self.option("jobu")).is_some_and(|v| v != 0 && v != i64::from(b'N')),
        };
        let full = self.letter("mode", b'A', "full") || self.option("jobu") == Some(i64::from(b'A'));
        if self.option("jobu") != self.option("jobvt") {
            return Err(self.refuse(" with vectors of one side alone"));
        }
        let kept = self.arrays[0];
        let b = &mut *self.b;
        let turned = jacobi::orthogonalize_rows(b, a);
        let mut flat = vec![turned.sizes];
        let mut unread = Vec::new();
        if vectors {
            let (u, v) = turned.singular_vectors(b);
            let (u, v) = if full { (jacobi::complete_basis(b, u, m), jacobi::complete_basis(b, v, n)) } else { (u, v) };
            flat.extend([u, super::adjoint(b, v)]);
        } else {
            // Scratch memory that no caller reads.
            let told = |i: usize| shape.as_tuple().and_then(|t| t.get(i)).and_then(Shape::as_array).cloned();
            let (Some(u), Some(v)) = (told(2), told(3)) else { return Err(self.refuse(" without vectors")) };
            unread.extend([u, v].map(|array| b.full(array.dtype, &array.dims, 0.0)));
        }
        let flat = self.unflat(&dims, flat);
        Ok([&[kept][..], &flat, &unread, &[self.fine(&dims)]].concat())
    }
    fn solve(&mut self) -> Result<Vec<InstId>> {
        let ((a, _), (rhs, _)) = (self.matrices(0)?, self.matrices(1)?);
        // The factor of the right-hand sides is an option in the oldest form, and a trailing operand in the next one.
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
