//! The kernel of a Fourier transform of lines.
//!
//! With the factor r of a pass, the product s of the factors before it and m = n/(r·s), a pass computes for each p < m and q < s
//! `y[q + s·(r·p + j)] = w(r·m)^(p·j) · Σ_k w(r)^(j·k) · x[q + s·(p + m·k)]`. Vectors are along q, and along p in the first pass.
use super::butterfly::{Butterfly, Parts};
use crate::hlo::attrs::FftKind;
use crate::optimize::fft_radices;
use crate::schedule::loops::grid::set_body_in_chunks;
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::vectors::{VectorRun, VectorWidth};
use crate::tensor::Tensor;
use std::f64::consts::TAU;

/// The family of Fourier transforms of complex lines.
pub const FAMILY: Family = Family {
    name: "fourier",
    recipe: |_, request| Ok(matches!(request.op(), Op::Fft { .. }).then_some(RecipeSetup::Plain)),
    emit: |s, root, _| s.emit_fourier(root),
};

/// The transform of lines, all of whose passes are in one kernel.
struct LineTransform {
    operand: InstId,
    out: ArrayView,
    /// Coordinates of the line.
    line: Vec<Index>,
    n: u64,
    inverse: bool,
    /// Type of the numbers, and of their parts.
    dtype: [DType; 2],
    /// A line between passes, twice: real parts, then imaginary ones. What one pass writes the next one reads.
    between: [BufId; 2],
}

/// A pass of a transform.
struct Pass {
    number: usize,
    radix: u64,
    /// The product of the factors of earlier passes.
    stride: u64,
    /// The product of the factors of later passes.
    rest: u64,
    /// The roots of unity by which results are multiplied, `[2][radix - 1][rest]`: real parts, then imaginary ones. The last pass has none.
    roots: Option<BufId>,
}

/// The values of p and q of which a pass computes a vector.
struct PassPlace {
    p: Index,
    q: Index,
}

impl<'a> Emitter<'a> {
    /// Emits the transform of each line along the last axis; the inverse divides by the length.
    fn emit_fourier(&mut self, KernelRoot { id, out, .. }: KernelRoot<'_>) -> Result<()> {
        let (inst, shape) = (&self.scope.comp[id], self.scope.comp.array_shape(id).clone());
        let radices = match &inst.op {
            Op::Fft { kind, length } => fft_radices(*kind, length, shape.dtype).map(|radices| (*kind, radices)),
            _ => None,
        };
        let Some((kind, radices)) = radices else { return Err(unsupported_error(self.scope.comp, id, "")) };
        let (operand, part, n) = (inst.operands[0], shape.dtype.real_part(), radices.iter().product::<u64>());
        let mut e = self.start_kernel(id);
        let (vars, line) = loop_variables(&mut e.k, &shape.dims[..shape.rank() - 1]);
        let between = [0, 1].map(|_| self.allocate_on_stack(part, 2 * n));
        let (inverse, dtype) = (kind == FftKind::Ifft, [shape.dtype, part]);
        let of_line = LineTransform { operand, out: out.view(&shape.dims)?, line, n, inverse, dtype, between };
        let (mut body, mut stride) = (Vec::new(), 1);
        for (number, radix) in radices.into_iter().enumerate() {
            let rest = n / (stride * radix);
            let roots = (rest > 1).then(|| self.add_constant(&of_line.roots(radix, rest)));
            body.extend(self.emit_fourier_pass(&mut e, &of_line, &Pass { number, radix, stride, rest, roots })?);
            stride *= radix;
        }
        e.k.flops = 5 * shape.elements() * u64::from(n.ilog2());
        set_body_in_chunks(&mut e.k, &vars, body);
        self.launch(e.k);
        Ok(())
    }

    /// Emits the loops of a pass.
    fn emit_fourier_pass(&mut self, e: &mut KernelBuilder, of_line: &LineTransform, pass: &Pass) -> Result<Vec<Stmt>> {
        let width = VectorWidth { lanes: self.processor_lanes(of_line.dtype[1]), masks: false };
        let is_first = pass.stride == 1;
        let outer = (!is_first).then(|| e.k.add_var(pass.rest));
        let mut body = Vec::new();
        for run in width.split(if is_first { pass.rest } else { pass.stride }) {
            let (block, lane) = (e.k.add_var(run.blocks), e.k.add_var(run.lanes));
            let along = run.element_index(&Index::var(block), lane);
            let place = match outer {
                None => PassPlace { p: along, q: Index::default() },
                Some(p) => PassPlace { p: Index::var(p), q: along },
            };
            let inside = self.emit_fourier_vector(e, of_line, pass, &place, &run)?;
            body.push(run.loop_nest(block, lane, inside));
        }
        Ok(match outer {
            Some(p) => vec![for_loop(p, LoopKind::Seq, body)],
            None => body,
        })
    }

    /// Emits the transforms of a vector of places.
    fn emit_fourier_vector(
        &mut self,
        e: &mut KernelBuilder,
        of_line: &LineTransform,
        pass: &Pass,
        place: &PassPlace,
        run: &VectorRun,
    ) -> Result<Vec<Stmt>> {
        let read = |k: u64| place.q.add(&place.p.offset((pass.rest * k) as i64).scale(pass.stride as i64));
        e.forget_elements();
        let mut elements = Vec::new();
        if pass.number == 0 {
            for k in 0..pass.radix {
                let at: Vec<Index> = of_line.line.iter().cloned().chain([read(k)]).collect();
                elements.push(self.emit_element(e, of_line.operand, &at)?);
            }
        }
        let [dtype, part] = of_line.dtype;
        let (lanes, inverse) = (run.lanes, of_line.inverse);
        let mut t = Butterfly { k: &mut e.k, dtype: part, lanes, inverse, body: Vec::new() };
        let values: Vec<Parts> = match pass.number.checked_sub(1) {
            None => elements.into_iter().map(|element| t.hold_complex(element, dtype)).collect(),
            Some(before) => (0..pass.radix)
                .map(|k| {
                    let parts = of_line.between_passes(before, &read(k)).map(|(buf, at)| t.k.add_load(buf, at));
                    t.hold_parts(parts)
                })
                .collect(),
        };
        for (j, sum) in (0..).zip(t.transform(&values)) {
            let turned = pass.multiply_by_root(&mut t, sum, j, &place.p);
            let to = place.q.add(&place.p.scale(pass.radix as i64).offset(j as i64).scale(pass.stride as i64));
            let stores = of_line.store(&mut t, pass, &to, turned);
            t.body.extend(stores);
        }
        Ok(t.body)
    }
}

impl LineTransform {
    /// The roots of unity of a pass.
    fn roots(&self, radix: u64, rest: u64) -> Tensor {
        let period = (radix * rest) as f64;
        let angle = |(j, p): (u64, u64)| TAU * ((j * p) % (radix * rest)) as f64 / period;
        let all = || (1..radix).flat_map(|j| (0..rest).map(move |p| (j, p))).map(angle);
        let sign = if self.inverse { 1.0 } else { -1.0 };
        let values: Vec<f64> = all().map(f64::cos).chain(all().map(|angle| sign * angle.sin())).collect();
        let dims = vec![2, radix - 1, rest];
        crate::scalar::eval::convert(&Tensor::from_vec(DType::F64, dims, values), self.dtype[1])
    }

    /// Buffers and indices of the real and the imaginary part of the line's number `at`, as pass `number` writes it.
    fn between_passes(&self, number: usize, at: &Index) -> [(BufId, Index); 2] {
        let buf = self.between[number % 2];
        [(buf, at.clone()), (buf, at.offset(self.n as i64))]
    }

    /// The stores of number `at` of a pass.
    fn store(&self, t: &mut Butterfly<'_>, pass: &Pass, at: &Index, value: Parts) -> Vec<Stmt> {
        if pass.rest > 1 {
            let places = self.between_passes(pass.number, at).into_iter().zip(value);
            return places.map(|((buf, index), value)| Stmt::Store { buf, index, value }).collect();
        }
        let scaled = if self.inverse { t.scale(value, 1.0 / self.n as f64) } else { value };
        let number = t.k.add_op(ScalarOp::Complex, &scaled, self.dtype[0]);
        let at: Vec<Index> = self.line.iter().cloned().chain([at.clone()]).collect();
        vec![self.out.store(&at, number)]
    }
}

impl Pass {
    /// Emits the product of result `j` at `p` with its root of unity.
    fn multiply_by_root(&self, t: &mut Butterfly<'_>, value: Parts, j: u64, p: &Index) -> Parts {
        let Some(roots) = self.roots.filter(|_| j > 0) else { return value };
        let cos = p.offset(((j - 1) * self.rest) as i64);
        let sin = cos.offset(((self.radix - 1) * self.rest) as i64);
        let root = [cos, sin].map(|at| t.k.add_load(roots, at));
        t.multiply(value, root)
    }
}
