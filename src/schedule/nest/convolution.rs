//! `convolution`: the operand is padded and dilated into a buffer where it must be; then it is a contraction over strides,
//! a group and a phase at a time, or, with one channel a group, what `depthwise.rs` does.
use super::contraction::{Axis, Contraction, Coordinates, Right};
use super::label;
use super::winograd::Plane;
use crate::diag::Result;
use crate::hlo::attrs::ConvDims;
use crate::hlo::{ArrayShape, Computation, InstId, Op};
use crate::kernel::index::{linear, reshape};
use crate::kernel::{BufId, Expr, Index, Kernel, Step, Stmt, VarId};
use crate::scalar::ScalarOp;
use crate::schedule::fuse::Fate;
use crate::schedule::layout::{self, Layout, Spot};
use crate::schedule::phases::{self, Phase};
use crate::schedule::{Scheduler, Scope, Value, refuse};
use crate::schedule::{winograd, winograd1d};
use crate::tensor::DType;

/// Most groups that become a contraction each.
const MOST_GROUPS: u64 = 64;

/// What becomes of a convolution that is a contraction.
type Then<'t, 'a> = &'t mut dyn FnMut(&mut Scheduler<'a>, &mut Scope<'a>, &Contraction, Coordinates<'_>) -> Result<()>;

/// Whether `id` makes one channel of one, or as many as [`ConvDims::repeats`], channels being the last axis everywhere.
pub(in crate::schedule) fn by_channel(comp: &Computation, id: InstId, d: &ConvDims) -> bool {
    let [input, kernel] = comp[id].operands[..] else { return false };
    let (input, kernel, result) = (comp.array(input), comp.array(kernel), comp.array(id));
    let minor = |axis: usize, shape: &ArrayShape| axis + 1 == shape.rank();
    d.feature_group_count > 1
        && ConvDims::repeats(kernel.dims[d.kernel_output_feature] / d.feature_group_count)
        && kernel.dims[d.kernel_input_feature] == 1
        && minor(d.input_feature, input)
        && minor(d.kernel_output_feature, kernel)
        && minor(d.output_feature, result)
}

/// Each phase along one axis with each along the others.
fn together(phases: &[Vec<Phase>]) -> Vec<Vec<Phase>> {
    phases.iter().rev().fold(vec![vec![]], |all, along| {
        all.iter().flat_map(|rest| along.iter().map(move |&phase| [&[phase], &rest[..]].concat())).collect()
    })
}

/// `layout` from the first window on, along axes without holes.
fn from_first_window(mut layout: Layout, d: &ConvDims) -> Layout {
    for (w, &axis) in d.window.iter().zip(&d.input_spatial).filter(|(w, _)| w.lhs_dilate == 1) {
        layout.origin -= w.pad_low * layout.strides[axis];
    }
    layout
}

impl<'a> Scheduler<'a> {
    /// `id` is the convolution itself or its epilogue.
    pub(super) fn convolution(
        &mut self,
        scope: &mut Scope<'a>,
        id: InstId,
        anchor: InstId,
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let comp = scope.comp;
        let inst = &comp[anchor];
        let Op::Convolution(d) = &inst.op else { return Err(refuse(comp, id, "")) };
        let result = comp.array(anchor).clone();
        if d.batch_group_count != 1 {
            return Err(refuse(comp, id, " with batch groups"));
        }
        if result.elements() == 0 {
            return Ok(());
        }
        if let Some(chain) = scope.chains.remove(&id) {
            return self.chain(scope, (id, anchor), &chain, out, steps);
        }
        if let Some(separable) = scope.separables.remove(&id) {
            return self.separable(scope, (id, anchor), &separable, out, steps);
        }
        if let Some(w) = winograd::choose(comp, anchor, self.target) {
            let planes = self.planes(scope, (id, anchor), d, steps)?;
            return self.winograd(scope, (id, anchor), d, &w, &planes, out, steps);
        }
        let parts = self.parts_at_edges(scope, anchor, d);
        let (left, at) = match parts {
            Some(_) => self.unpadded(scope, inst.operands[0], d)?,
            None => self.padded(scope, (id, anchor), inst.operands[0], d, steps)?,
        };
        let group = d.feature_group_count;
        if by_channel(comp, anchor, d) {
            return self.depthwise(scope, (id, anchor), d, (left, &at), out, steps);
        }
        if let Some(w) = winograd1d::choose(comp, anchor, self.target) {
            return self.winograd_1d(scope, (id, anchor), d, &w, (left, &at), out, steps);
        }
        if group > MOST_GROUPS {
            return Err(refuse(
                comp,
                id,
                &format!(" in {group} groups of several channels each (at most {MOST_GROUPS})"),
            ));
        }
        let right = self.right(scope, inst.operands[1])?;
        let phases = parts.or_else(|| phases::split(comp, anchor, d)).unwrap_or_else(|| {
            let axes = d.output_spatial.iter().zip(&d.window);
            axes.map(|(&axis, w)| vec![Phase::only(result.dims[axis], w.size)]).collect()
        });
        let parts: Vec<(Vec<Phase>, u64)> =
            together(&phases).into_iter().flat_map(|phases| (0..group).map(move |g| (phases.clone(), g))).collect();
        let each = |s: &mut Self, scope: &mut Scope<'a>, then: Then<'_, 'a>| -> Result<()> {
            parts.iter().try_for_each(|(phases, group)| {
                s.as_contraction(scope, anchor, d, (left, &at), &right, (phases, *group), then)
            })
        };
        // one alone is asked when it is made
        let mut is_narrow = parts.len() > 1;
        if is_narrow {
            each(self, scope, &mut |s, _, c, _| {
                is_narrow &= s.narrow_right(c).is_some();
                Ok(())
            })?;
        }
        if is_narrow {
            return self.narrow(scope, (id, anchor), out, steps, |s, scope, out, steps| {
                each(s, scope, &mut |s, scope, c, place| match s.narrow_right(c) {
                    Some(right) => s.narrow_sums(scope, anchor, c, &right, place, out, steps),
                    None => Ok(()),
                })
            });
        }
        each(self, scope, &mut |s, scope, c, place| s.contraction(scope, (id, anchor), c, place, out, steps))
    }

    /// Hands one phase along each axis in one group on to `then` as a contraction.
    pub(super) fn as_contraction(
        &mut self,
        scope: &mut Scope<'a>,
        anchor: InstId,
        d: &ConvDims,
        (left, input): (BufId, &Layout),
        right: &Right,
        (phases, group): (&[Phase], u64),
        then: Then<'_, 'a>,
    ) -> Result<()> {
        let comp = scope.comp;
        let (kernel, result) = (comp.array(comp[anchor].operands[1]), comp.array(anchor));
        let per_group = kernel.dims[d.kernel_output_feature] / d.feature_group_count.max(1);
        let features = kernel.dims[d.kernel_input_feature];
        let (xs, ks) = (&input.strides, kernel.strides());
        let mut rows = vec![Axis { extent: result.dims[d.output_batch], a: xs[d.input_batch], b: 0 }];
        let mut sum = Vec::new();
        let mut a0 = input.origin + (group * features) as i64 * xs[d.input_feature];
        let mut b0 = (group * per_group) as i64 * ks[d.kernel_output_feature] as i64;
        for (i, (w, p)) in d.window.iter().zip(phases).enumerate() {
            let (x, k) = (xs[d.input_spatial[i]], ks[d.kernel_spatial[i]] as i64);
            rows.push(Axis { extent: p.count, a: x * w.stride as i64, b: 0 });
            let step = if w.reversal { -k } else { k };
            a0 += p.base * x;
            b0 += if w.reversal { k * (w.size as i64 - 1) } else { 0 } + step * p.tap as i64;
            sum.push(Axis { extent: p.taps, a: x * w.rhs_dilate as i64, b: step * p.step as i64 });
        }
        sum.push(Axis { extent: features, a: xs[d.input_feature], b: ks[d.kernel_input_feature] as i64 });
        // which row is read comes from both loops together
        let inside = super::inside(comp, anchor, d, self.target).map(|inside| {
            let (inside, first) = inside.lying(xs[d.input_spatial[0]]);
            (a0, rows[1].a, sum[0].a) = (a0 + first, 0, 0);
            inside
        });
        let row_dims: Vec<u64> = rows.iter().map(|x| x.extent).collect();
        let total: u64 = row_dims.iter().product();
        let rank = result.rank();
        let place = |k: &Kernel, _: &Index, r: &Index, c: &Index| {
            let mut at = vec![Index::default(); rank];
            let row = reshape(std::slice::from_ref(r), &[total], &row_dims, &k.vars);
            at[d.output_batch] = row[0].clone();
            for (i, (&axis, p)) in d.output_spatial.iter().zip(phases).enumerate() {
                at[axis] = row[i + 1].scale(p.step as i64).offset(p.first as i64);
            }
            at[d.output_feature] = c.clone();
            at
        };
        let c = Contraction {
            dtype: result.dtype,
            left,
            right: right.clone(),
            a0,
            b0,
            batch: vec![],
            rows,
            columns: vec![Axis { extent: per_group, a: 0, b: ks[d.kernel_output_feature] as i64 }],
            sum,
            first_column: group * per_group,
            sums_apart: None,
            direct_flops: None,
            inside,
        };
        then(self, scope, &c, &place)
    }

    /// The parts of a convolution whose operand is to be read without margins.
    fn parts_at_edges(&self, scope: &Scope<'a>, anchor: InstId, d: &ConvDims) -> Option<Vec<Vec<Phase>>> {
        let asked = self.is_entry(scope.comp) && self.choices.in_parts.contains(&scope.comp[anchor].operands[0]);
        asked.then(|| layout::at_edges(scope.comp, anchor, d, self.target)).flatten()
    }

    /// The operand where it lies, and where the first window would begin there.
    fn unpadded(&mut self, scope: &mut Scope<'a>, operand: InstId, d: &ConvDims) -> Result<(BufId, Layout)> {
        let value = self.value(scope, operand)?;
        let layout = from_first_window(value.layout(&scope.comp.array(operand).dims), d);
        Ok((value.buffer()?, layout))
    }

    /// The operand with its padding, and where it must be its base dilation, in memory, and where the first window begins there:
    /// along axes of several phases, where the operand does.
    pub(super) fn padded(
        &mut self,
        scope: &mut Scope<'a>,
        (id, anchor): (InstId, InstId),
        operand: InstId,
        d: &ConvDims,
        steps: &mut Vec<Step>,
    ) -> Result<(BufId, Layout)> {
        let shape = scope.comp.array(operand).clone();
        let Some(margins) = layout::margins(scope.comp, anchor, d, self.target) else {
            let value = self.dilated(scope, id, operand, d, steps)?;
            return Ok((value.buffer()?, value.layout(&shape.dims)));
        };
        let value = self.with_room(scope, id, operand, d, &margins, steps)?;
        let layout = from_first_window(value.layout(&shape.dims), d);
        Ok((value.buffer()?, layout))
    }

    /// The operand with its margins, or the parts of a concatenation that has no memory.
    fn planes(
        &mut self,
        scope: &mut Scope<'a>,
        (id, anchor): (InstId, InstId),
        d: &ConvDims,
        steps: &mut Vec<Step>,
    ) -> Result<Vec<Plane>> {
        let comp = scope.comp;
        let whole = comp[anchor].operands[0];
        let parts = match scope.plan.fate[whole] {
            Fate::Materialised => std::slice::from_ref(&whole),
            Fate::Inlined(_) => &comp[whole].operands,
        };
        let mut planes = Vec::new();
        for &part in parts {
            let (buf, layout) = self.padded(scope, (id, anchor), part, d, steps)?;
            planes.push(Plane { buf, layout, channels: comp.array(part).dims[d.input_feature] });
        }
        Ok(planes)
    }

    /// The operand where it has enough zeros around it, or a copy that has.
    fn with_room(
        &mut self,
        scope: &mut Scope<'a>,
        id: InstId,
        operand: InstId,
        d: &ConvDims,
        margins: &[(u64, u64)],
        steps: &mut Vec<Step>,
    ) -> Result<Value> {
        let shape = scope.comp.array(operand).clone();
        let value = self.value(scope, operand)?;
        let from = value.layout(&shape.dims);
        let fits = |layout: &Layout| {
            let mut all = margins.iter().zip(&d.input_spatial);
            all.all(|(&(low, high), &axis)| low <= layout.low[axis] && high <= layout.high[axis])
        };
        if fits(&from) {
            return Ok(value);
        }
        let copy = scope.padded.get(&operand).filter(|copy| fits(&copy.layout(&shape.dims)));
        if let Some(copy) = copy {
            return Ok(copy.clone());
        }
        let (low, high) = match scope.spots[operand].clone() {
            Spot::Margin { low, high, .. } => (low, high),
            Spot::Dense | Spot::Part { .. } => {
                let (mut low, mut high) = (vec![0; shape.rank()], vec![0; shape.rank()]);
                for (&margins, &axis) in margins.iter().zip(&d.input_spatial) {
                    (low[axis], high[axis]) = margins;
                }
                (low, high)
            }
        };
        let copy = self.with_margin(&shape, &low, &high, steps)?;
        self.note_margin(scope, operand, copy.buffer()?);
        let mut k = Kernel { label: format!("pad {}", label(scope.comp, id)), ..Kernel::default() };
        let vars: Vec<VarId> = shape.dims.iter().map(|&n| k.var(n)).collect();
        let at: Vec<Index> = vars.iter().map(|&v| Index::var(v)).collect();
        let x = k.expr(Expr::Load(value.buffer()?, from.at(&at)));
        let index = copy.layout(&shape.dims).at(&at);
        let store = Stmt::Store { buf: copy.buffer()?, index, value: x };
        super::pointwise::nest(&mut k, &vars, &[store], self.lanes(shape.dtype));
        if shape.elements() > 0 {
            self.launch(k, steps);
        }
        scope.padded.insert(operand, copy.clone());
        Ok(copy)
    }

    /// A copy with base dilation and padding written out.
    fn dilated(
        &mut self,
        scope: &mut Scope<'a>,
        id: InstId,
        operand: InstId,
        d: &ConvDims,
        steps: &mut Vec<Step>,
    ) -> Result<Value> {
        let shape = scope.comp.array(operand).clone();
        let value = self.value(scope, operand)?;
        let from = value.layout(&shape.dims);
        let mut dims = shape.dims.clone();
        for (w, &axis) in d.window.iter().zip(&d.input_spatial) {
            let spread = (dims[axis].max(1) - 1) * w.lhs_dilate + 1;
            let size = spread as i64 + w.pad_low + w.pad_high;
            dims[axis] =
                u64::try_from(size).map_err(|_| refuse(scope.comp, id, " with padding that removes everything"))?;
        }
        let mut k = Kernel { label: format!("pad {}", label(scope.comp, id)), ..Kernel::default() };
        let vars: Vec<VarId> = dims.iter().map(|&n| k.var(n)).collect();
        let at: Vec<Index> = vars.iter().map(|&v| Index::var(v)).collect();
        let mut source = at.clone();
        let mut inside = None;
        for (w, &axis) in d.window.iter().zip(&d.input_spatial) {
            let span = (shape.dims[axis].max(1) - 1) as i64 * w.lhs_dilate as i64;
            let moved = at[axis].offset(-w.pad_low);
            let held = moved.limit(0, span, &k.vars);
            let mut tests = Vec::new();
            if held != moved {
                tests.push(k.expr(Expr::Within(moved, 0, span + 1)));
            }
            if w.lhs_dilate > 1 {
                let rest = held.rem(w.lhs_dilate as i64, &k.vars);
                tests.push(k.expr(Expr::Within(rest, 0, 1)));
            }
            for t in tests {
                inside = Some(inside.map_or(t, |a| k.op(ScalarOp::And, &[a, t], DType::Pred)));
            }
            source[axis] = held.div(w.lhs_dilate as i64, &k.vars);
        }
        let mut x = k.expr(Expr::Load(value.buffer()?, from.at(&source)));
        if let Some(inside) = inside {
            let zero = super::number(&mut k, shape.dtype, 0.0);
            x = k.op(ScalarOp::Select, &[inside, x, zero], shape.dtype);
        }
        let to = self.buffer(shape.dtype, dims.iter().product());
        let store = Stmt::Store { buf: to, index: linear(&at, &dims), value: x };
        super::pointwise::nest(&mut k, &vars, &[store], self.lanes(shape.dtype));
        self.launch(k, steps);
        Ok(Value { leaves: vec![to], layout: Some(Layout::dense(&dims)) })
    }
}
