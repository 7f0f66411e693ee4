//! `select-and-scatter` in vectors along the last axis, whose elements belong to windows of their own.
//!
//! Of a window each tap is compared with the best one before it; the last tap that took its place is selected. Where windows share no
//! element and reach over no edge, a window writes all of its elements: what it adds to the selected one, and what the result starts as
//! to the others. Else the number of the selected tap of each window is kept, and each element of the result takes what it is given by
//! the windows over it, in their order, so that sums are those of one window after another.
use crate::hlo::CompId;
use crate::scalar::{CompareKind, Direction};
use crate::schedule::families::select_and_scatter::recipe::WindowGeometry;
use crate::schedule::loops::nest::set_vectorized_body;
use crate::schedule::loops::prelude::*;

/// Stored tap number of a window without a selected tap.
const NONE: i64 = -1;

/// One tap of a window.
struct WindowTap {
    /// The element that the tap reads, limited to the array.
    from: Vec<Index>,
    /// The condition under which the tap replaces the best earlier one; `None` if it always does.
    replaces: Option<ExprId>,
}

/// Compile-time knowledge whether an earlier tap of the window was inside the array.
#[derive(Clone, Copy)]
enum EarlierTap {
    Never,
    When(ExprId),
    Always,
}

impl WindowGeometry<'_> {
    /// The taps in order, as offsets along each axis.
    fn tap_offsets(&self) -> Vec<Vec<u64>> {
        let mut all = vec![Vec::new()];
        for w in self.window {
            all = all.into_iter().flat_map(|tap| (0..w.size).map(move |i| [&tap[..], &[i]].concat())).collect();
        }
        all
    }

    /// The index that a tap of the window at `at` reads, clamped to the array, and the condition that the tap is inside; `None` if it
    /// always is.
    fn element(&self, e: &mut KernelBuilder, at: &[Index], tap: &[u64]) -> (Vec<Index>, Option<ExprId>) {
        let (mut from, mut inside) = (Vec::with_capacity(at.len()), None);
        for (d, w) in self.window.iter().enumerate() {
            let i = at[d].scale(w.stride as i64).offset(tap[d] as i64 - w.pad_low);
            from.push(clamped_coordinate(&mut e.k, &i, self.dims[d], 1, &mut inside));
        }
        (from, inside)
    }
}

fn and(k: &mut Kernel, a: Option<ExprId>, b: ExprId) -> ExprId {
    a.map_or(b, |a| logical_and(k, a, b))
}

impl<'a> Emitter<'a> {
    /// Compares the taps of the window at `at`, in order.
    fn compare_taps(
        &mut self,
        e: &mut KernelBuilder,
        x: InstId,
        windows: &WindowGeometry,
        keeps: CompId,
        at: &[Index],
    ) -> Result<Vec<WindowTap>> {
        let dtype = self.scope.comp.array_shape(x).dtype;
        let (mut found, mut best, mut taps) = (EarlierTap::Never, None, Vec::new());
        for tap in windows.tap_offsets() {
            let (from, inside) = windows.element(e, at, &tap);
            let value = self.emit_element(e, x, &from)?;
            let replaces = match (found, best) {
                (EarlierTap::Never, _) | (_, None) => inside,
                (EarlierTap::Always, Some(best)) => {
                    let keep = self.inline_computation(e, keeps, &[best, value])?[0];
                    let lost = logical_not(&mut e.k, keep);
                    Some(and(&mut e.k, inside, lost))
                }
                (EarlierTap::When(found), Some(best)) => {
                    let keep = self.inline_computation(e, keeps, &[best, value])?[0];
                    let keep = and(&mut e.k, Some(found), keep);
                    let lost = logical_not(&mut e.k, keep);
                    Some(and(&mut e.k, inside, lost))
                }
            };
            best = Some(best.map_or(value, |best| select(&mut e.k, replaces, value, best, dtype)));
            found = match (found, inside) {
                (EarlierTap::Always, _) | (_, None) => EarlierTap::Always,
                (EarlierTap::Never, Some(inside)) => EarlierTap::When(inside),
                (EarlierTap::When(found), Some(inside)) => {
                    EarlierTap::When(e.k.add_op(ScalarOp::Or, &[found, inside], DType::Pred))
                }
            };
            taps.push(WindowTap { from, replaces });
        }
        Ok(taps)
    }

    /// Emits disjoint windows, each of which writes its elements.
    pub(in crate::schedule) fn emit_disjoint_windows(
        &mut self,
        KernelRoot { id, out, .. }: KernelRoot<'_>,
        windows: &WindowGeometry,
        keeps: CompId,
        scatter: CompId,
        covers: bool,
    ) -> Result<()> {
        let comp = self.scope.comp;
        let [x, source, init] = comp[id].operands[..] else { return Err(unsupported_error(comp, id, "")) };
        if !covers {
            self.emit_splat(id, init, windows.dims, out)?;
        }
        let (buf, dtype) = (out.dense_buffer()?, comp.array_shape(source).dtype);
        let mut e = self.start_kernel(id);
        let (vars, at) = nonunit_loop_variables(&mut e.k, windows.counts);
        let taps = self.compare_taps(&mut e, x, windows, keeps, &at)?;
        let (init, given) = (self.emit_element(&mut e, init, &[])?, self.emit_element(&mut e, source, &at)?);
        let given = self.inline_computation(&mut e, scatter, &[init, given])?[0];
        let (mut stores, mut later): (Vec<Stmt>, Option<ExprId>) = (Vec::new(), None);
        for tap in taps.iter().rev() {
            // the last that took the place of the best
            let still = later.map(|later| logical_not(&mut e.k, later));
            let selected = match (tap.replaces, still) {
                (Some(replaces), still) => Some(and(&mut e.k, still, replaces)),
                (None, still) => still,
            };
            let value = select(&mut e.k, selected, given, init, dtype);
            stores.push(Stmt::Store { buf, index: linear_index(&tap.from, windows.dims), value });
            later = match (later, tap.replaces) {
                (Some(later), Some(replaces)) => Some(e.k.add_op(ScalarOp::Or, &[later, replaces], DType::Pred)),
                (later, replaces) => later.or(replaces),
            };
        }
        stores.reverse();
        e.k.flops = windows.counts.iter().product::<u64>() * taps.len() as u64;
        let lanes = self.vector_lanes(dtype);
        set_vectorized_body(&mut e.k, &vars, &stores, lanes);
        self.launch(e.k);
        Ok(())
    }

    /// Emits the kernel that stores the number of the selected tap of each window, [`NONE`] if no tap is inside the array.
    fn selected_taps(&mut self, id: InstId, windows: &WindowGeometry, keeps: CompId) -> Result<BufId> {
        let x = self.scope.comp[id].operands[0];
        let mut e = self.start_kernel(id);
        let (vars, at) = nonunit_loop_variables(&mut e.k, windows.counts);
        let taps = self.compare_taps(&mut e, x, windows, keeps, &at)?;
        let mut chosen = constant_of_number(&mut e.k, DType::S32, NONE as f64);
        for (i, tap) in taps.iter().enumerate() {
            let own = constant_of_number(&mut e.k, DType::S32, i as f64);
            chosen = select(&mut e.k, tap.replaces, own, chosen, DType::S32);
        }
        let value = convert(&mut e.k, chosen, DType::S32, DType::S8);
        let numbers = self.allocate_buffer(DType::S8, windows.counts.iter().product());
        e.k.flops = windows.counts.iter().product::<u64>() * taps.len() as u64;
        let lanes = self.vector_lanes(self.scope.comp.array_shape(x).dtype);
        set_vectorized_body(
            &mut e.k,
            &vars,
            &[Stmt::Store { buf: numbers, index: linear_index(&at, windows.counts), value }],
            lanes,
        );
        self.launch(e.k);
        Ok(numbers)
    }

    /// Emits the sum, for each element of the result, over the windows that selected it.
    pub(in crate::schedule) fn gather_windows(
        &mut self,
        KernelRoot { id, out, .. }: KernelRoot<'_>,
        windows: &WindowGeometry,
        keeps: CompId,
        scatter: CompId,
    ) -> Result<()> {
        let numbers = self.selected_taps(id, windows, keeps)?;
        let comp = self.scope.comp;
        let [_, source, init] = comp[id].operands[..] else { return Err(unsupported_error(comp, id, "")) };
        let (buf, dtype) = (out.dense_buffer()?, comp.array_shape(source).dtype);
        let mut e = self.start_kernel(id);
        let (vars, at) = nonunit_loop_variables(&mut e.k, windows.dims);
        // along each axis the windows over an element, the first of them first: at most as many as strides in a window
        let mut all: Vec<(Vec<Index>, Index, Option<ExprId>)> = vec![(Vec::new(), Index::constant(0), None)];
        for (d, w) in windows.window.iter().enumerate() {
            let (stride, size, last) = (w.stride as i64, w.size as i64, windows.counts[d] as i64 - 1);
            let held = at[d].offset(w.pad_low);
            let (nearest, rest) = (held.div(stride, &e.k.vars), held.rem(stride, &e.k.vars));
            let mut next = Vec::new();
            for (window, tap, over) in &all {
                for back in (0..(size + stride - 1) / stride).rev() {
                    let own = nearest.offset(-back);
                    let i = rest.offset(back * stride);
                    let mut over = *over;
                    for (index, most) in [(&own, last), (&i, size - 1)] {
                        let (low, high) = index.range(&e.k.vars);
                        if low < 0 || high > most {
                            add_condition(&mut e.k, &mut over, Expr::Within(index.clone(), 0, most + 1));
                        }
                    }
                    let window = [&window[..], &[own.clamp_to(0, last, &e.k.vars)]].concat();
                    next.push((window, tap.scale(size).add(&i), over));
                }
            }
            all = next;
        }
        let mut sum = self.emit_element(&mut e, init, &[])?;
        for (window, tap, over) in all {
            let chosen = e.k.add_load(numbers, linear_index(&window, windows.counts));
            let chosen = convert(&mut e.k, chosen, DType::S8, DType::S32);
            let own = e.k.add_expr(Expr::Number(tap, DType::S32));
            let same = e.k.add_op(ScalarOp::Compare(Direction::Eq, CompareKind::Partial), &[chosen, own], DType::Pred);
            let given = and(&mut e.k, over, same);
            let with = self.emit_element(&mut e, source, &window)?;
            let with = self.inline_computation(&mut e, scatter, &[sum, with])?[0];
            sum = select(&mut e.k, Some(given), with, sum, dtype);
        }
        e.k.flops = windows.dims.iter().product();
        let lanes = self.vector_lanes(dtype);
        set_vectorized_body(
            &mut e.k,
            &vars,
            &[Stmt::Store { buf, index: linear_index(&at, windows.dims), value: sum }],
            lanes,
        );
        self.launch(e.k);
        Ok(())
    }
}
