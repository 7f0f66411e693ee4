//! Functions with dynamic sizes: sizes that vary from call to call, up to an upper bound.
//!
//! A function is lowered once with symbolic sizes; the comparisons of sizes that lowering relied on are recorded and proved for every size
//! (`symbolic_function.rs`). The function for the upper bound becomes a module for every size (`pad/`): arrays have the sizes of the
//! bound, and elements beyond the actual sizes are masked where they could reach a result. A function that exists for every second or
//! eighth size only is lowered in such steps (`steps.rs`). The work is that of the bound; variants for smaller bounds (size buckets) let the
//! work follow the sizes.
mod constraints;
mod equality;
mod evaluate;
mod extent;
mod size_exprs;
mod symbolic_function;
mod pad;
mod rows;
mod steps;

pub use evaluate::{evaluate_at_sizes, failed_check_error};

use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::{BoundCheck, CheckedQuantity, RuntimeCheck};
use crate::lower::{FixedSizeLowering, Lowered, SizeBucket, SizeLoweringFailure, SizeRecordingLowering, SizeVariants};
use crate::symbolic::Interval;
use crate::tensor::{Size, Sizes};
use constraints::SizeConstraints;
use extent::Extent;
use pad::PaddedModule;
use size_exprs::{ComputationExprs, SizeObstacle};
use std::sync::Arc;
use steps::SizeSteps;
use symbolic_function::{ConstrainedLowering, SymbolicFunction};

/// Lowers a function for every size up to upper bounds. `given` are the sizes that the caller passes, `args[i]` the sizes of the axes of
/// argument `i`, by index into `given`, and `traced` lowers the function. Data-dependent sizes vary too.
///
/// # Errors
/// Errors of lowering; `Code::OpenSize` where lowering depends on a size in a way that one module can't express, or where an instruction is
/// not known to be right for padded arrays.
pub fn lower(given: &[Size], args: Vec<Vec<Option<usize>>>, traced: &SizeRecordingLowering) -> Result<Lowered> {
    let mut constraints = SizeConstraints::none(given.len());
    let (function, derived, mut all, exact) = loop {
        let lowering =
            VariantLowering { lowering: ConstrainedLowering { traced, constraints: &constraints }, args: &args };
        match lowering.lower_variants(&constraints.steps.step_count_ranges(given)) {
            Ok(variants) => break variants,
            Err(failure) => constraints.add(&failure, given).ok_or(failure.error)?,
        }
    };
    let steps = constraints.steps;
    let (_, largest) = &function.bounds[0];
    let module = all.remove(0).module;
    let largest = Lowered { module, data_sizes: Vec::new(), ..largest.clone() };
    if derived.sizes.is_empty() && given.is_empty() && largest.bound_checks.is_empty() {
        return Ok(largest);
    }
    let follows = derived.sizes.is_empty() && function.data_size_count() == 0 && largest.bound_checks.is_empty();
    let one_size = given.len() == 1 && follows && function.specialized_sizes.is_empty() && steps.all[0].is_every_size();
    let base = &function.bounds[0].1;
    let by_rows = one_size
        && rows::is_rowwise(base, &ComputationExprs::transferred_to_isomorphic(&function.forms, &base.module), &args);
    let ends = |end: fn(&Size) -> u64| steps.sizes_from_counts(&function.given.iter().map(end).collect::<Vec<u64>>());
    let ends = ends(|s| s.least).into_iter().zip(ends(|s| s.most));
    let sound: Vec<Size> = given.iter().zip(ends).map(|(s, (least, most))| Size { least, most, ..s.clone() }).collect();
    let asked = sizes_of_bound_checks(&[&largest.bound_checks[..], &steps.stride_checks(given)].concat());
    let sizes = Sizes { all: [&sound[..], &derived.sizes, &asked].concat(), args, results: derived.axes.clone() };
    Ok(Lowered { size_variants: Some(Arc::new(SizeVariants { sizes, by_rows, smaller: all, exact })), ..largest })
}

/// A function lowered at each of its upper bounds, for all sizes except those that need a specialized lowering.
struct BoundedFunction {
    /// Sizes that the caller passes, counted in steps.
    given: Vec<Size>,
    /// Smallest value of each size, of the caller's first, then of the data-dependent ones.
    least: Vec<u64>,
    /// Upper bounds of the caller's sizes, largest first, each with the function for exactly these sizes.
    bounds: Vec<(Vec<u64>, Lowered)>,
    /// Size expressions of each computation.
    forms: Vec<ComputationExprs>,
    /// Indices of the caller's sizes at whose smallest value the function needs a lowering of its own.
    specialized_sizes: Vec<usize>,
}

impl BoundedFunction {
    /// Number of data-dependent sizes.
    fn data_size_count(&self) -> usize {
        self.least.len() - self.given.len()
    }

    /// Pads the function for each of its bounds, largest first. The modules also return the sizes in `derived`.
    fn buckets(&self, derived: &DerivedSizes, steps: &SizeSteps) -> Result<Vec<SizeBucket>> {
        let given = &self.given[..];
        let one = |(most, lowered): &(Vec<u64>, Lowered)| {
            let own = ComputationExprs::transferred_to_isomorphic(&self.forms, &lowered.module);
            let all: Vec<u64> = most.iter().copied().chain(lowered.data_sizes.iter().map(|f| f.1)).collect();
            let ends = self.least.iter().zip(&all);
            let ranges: Vec<Interval> = ends.map(|(&a, &b)| Interval::new(a.min(b).into(), b.into())).collect();
            let padded = PaddedModule {
                module: &lowered.module,
                forms: &own,
                steps,
                data_size_count: self.data_size_count(),
                ranges,
                args: lowered.args.len(),
                results: (lowered.results.len(), &derived.extents),
                bound_checks: lowered.bound_checks.len(),
            };
            let module = padded.emit().map_err(|d| open_size_error(&d, given))?;
            let results = lowered.results.iter().map(|r| r.dims.clone()).collect();
            Ok(SizeBucket { max_sizes: steps.sizes_from_counts(most), module, results, is_separate: false })
        };
        self.bounds.iter().map(one).collect()
    }
}

/// Inputs for lowering all variants of one function.
#[derive(Clone, Copy)]
struct VariantLowering<'a> {
    lowering: ConstrainedLowering<'a>,
    /// Index of the caller's size of each axis of each argument; `None` for fixed axes.
    args: &'a [Vec<Option<usize>>],
}

/// Result of lowering a function and its specializations: the general function, the sizes that calls compute for its results, the padded
/// modules of all of them, and the lowering at exact sizes.
type LoweredVariants = (BoundedFunction, DerivedSizes, Vec<SizeBucket>, FixedSizeLowering);

impl<'a> VariantLowering<'a> {
    fn steps(self) -> &'a SizeSteps {
        &self.lowering.constraints.steps
    }

    /// Lowers the function and its specializations for sizes counted in steps.
    ///
    /// # Errors
    /// Errors of lowering, also a failure that needs a further constraint.
    fn lower_variants(self, given: &[Size]) -> Result<LoweredVariants, SizeLoweringFailure> {
        let (first, function) = self.lower_at_bounds(given, true)?;
        let mut each = vec![first];
        let derived = DerivedSizes::of(&function.bounds[0].1, &function.forms, &function.given, self.steps());
        let mut all = function.buckets(&derived, self.steps())?;
        let mut todo: Vec<(Vec<Size>, usize)> =
            function.specialized_sizes.iter().map(|&size| (function.given.clone(), size)).collect();
        while let Some((mut given, size)) = todo.pop() {
            given[size].most = given[size].least;
            let (once, own) = self.lower_at_bounds(&given, false)?;
            each.push(once);
            if !derived.match_results_of(&own) {
                return Err(differing_results_error(&own.given).into());
            }
            let buckets = own.buckets(&derived, self.steps())?;
            all.extend(buckets.into_iter().map(|bucket| SizeBucket { is_separate: true, ..bucket }));
            todo.extend(own.specialized_sizes.iter().map(|&other| (own.given.clone(), other)));
        }
        Ok((function, derived, all, self.exact_lowering(each)))
    }

    /// Makes the lowering at exact sizes, which instantiates the last function of `each` that covers the sizes; specializations stand
    /// behind the general function.
    fn exact_lowering(self, each: Vec<SymbolicFunction>) -> FixedSizeLowering {
        let (steps, args) = (self.steps().clone(), self.args.to_vec());
        FixedSizeLowering(Arc::new(move |sizes| {
            let counts = steps.counts_of_sizes(sizes)?;
            let once = each.iter().rev().find(|once| once.covers(&counts));
            once.and_then(|once| once.instantiate_exact(&counts, &steps, &args)).ok_or_else(|| {
                Diagnostic::new(Code::BadInputs, format!("there is no function for the sizes {sizes:?}")).into()
            })
        }))
    }

    /// Lowers the function once, and instantiates it at its upper bounds, with `with_halves` also at halved ones.
    fn lower_at_bounds(
        self,
        given: &[Size],
        with_halves: bool,
    ) -> Result<(SymbolicFunction, BoundedFunction), SizeLoweringFailure> {
        let given = self.lowering.lowerable_sizes(given)?;
        let once = SymbolicFunction::lower(&given, self.lowering)?;
        let most: Vec<u64> = given.iter().map(|s| s.most).collect();
        let halves = if with_halves { halved_bounds(&given) } else { Vec::new() };
        let at = |most: Vec<u64>| {
            let unknown_size = || SizeObstacle {
                node: Default::default(),
                what: "the largest value of a size is not known, or is beyond 63 bits".to_string(),
            };
            let lowered = once
                .instantiate_at_bound(&most, self.steps(), self.args)
                .ok_or_else(|| open_size_error(&unknown_size(), &given))?;
            Ok((most, lowered))
        };
        let bounds = std::iter::once(most).chain(halves).map(at).collect::<Result<Vec<_>>>()?;
        let least = given.iter().map(|s| s.least).chain(once.ranges.iter().skip(given.len()).map(|_| 0)).collect();
        let (forms, specialized_sizes) = (once.forms.clone(), once.specialized_sizes.clone());
        Ok((once, BoundedFunction { given, least, bounds, forms, specialized_sizes }))
    }
}

/// Upper bound on the size buckets of a function.
const MAX_BUCKETS: usize = 8;

/// Bounds of the specializations for smaller sizes: each half of the one before, from the half of the largest sizes down to the smallest.
fn halved_bounds(given: &[Size]) -> Vec<Vec<u64>> {
    let mut out: Vec<Vec<u64>> = Vec::new();
    let mut last: Vec<u64> = given.iter().map(|s| s.most).collect();
    let least: Vec<u64> = given.iter().map(|s| s.least).collect();
    while last != least && out.len() + 1 < MAX_BUCKETS {
        last = last.iter().zip(&least).map(|(n, &least)| n.div_ceil(2).max(least)).collect();
        out.push(last.clone());
    }
    if last != least && least.iter().all(|&n| n <= 1) {
        out.push(least);
    }
    out
}

/// Converts run-time checks to sizes that a call returns, each with its upper bound. A name that occurs more than once gets a number as
/// its suffix.
fn sizes_of_bound_checks(bound_checks: &[BoundCheck]) -> Vec<Size> {
    let mut out: Vec<Size> = Vec::with_capacity(bound_checks.len());
    for BoundCheck { node, most, quantity, .. } in bound_checks {
        let node = &match quantity {
            CheckedQuantity::Check(check) => name_of_check(node, *check),
            CheckedQuantity::Size | CheckedQuantity::Rounds => node.clone(),
        };
        let name = (1..).map(|n| if n == 1 { node.clone() } else { format!("{node}_{n}") });
        let name = name.into_iter().find(|name| out.iter().all(|s| s.name != *name)).unwrap_or_default();
        out.push(Size {
            name,
            least: 0,
            most: *most,
            is_result: true,
            is_check: matches!(quantity, CheckedQuantity::Check(_)),
        });
    }
    out
}

/// Name of a run-time check: the node and what failed there.
pub fn name_of_check(node: &str, check: RuntimeCheck) -> String {
    format!("{node}: {}", check.failure_text())
}

/// Sizes of result axes that equal none of the caller's sizes, so that a call has to compute them.
struct DerivedSizes {
    /// Expression of each derived size.
    extents: Vec<Extent>,
    /// Name and range of each derived size.
    sizes: Vec<Size>,
    /// Index of the size of each axis of each result, the derived sizes counted behind the caller's; `None` for fixed axes.
    axes: Vec<Vec<Option<usize>>>,
    /// Expression of each axis of each result.
    dims: Vec<Vec<Extent>>,
}

impl DerivedSizes {
    fn of(base: &Lowered, forms: &[ComputationExprs], given: &[Size], steps: &SizeSteps) -> DerivedSizes {
        let dims = result_dims(base, forms);
        let mut derived = DerivedSizes { extents: Vec::new(), sizes: Vec::new(), axes: Vec::new(), dims: dims.clone() };
        let found = base.data_sizes.iter();
        let range = |least: u64, most: u64| Interval::new(least.min(most).into(), most.into());
        let ranges = given.iter().map(|s| range(s.least, s.most)).chain(found.map(|f| range(0, f.1)));
        let ranges: Vec<Interval> = ranges.collect();
        for (result, dims) in base.results.iter().zip(dims) {
            let mut axes = Vec::with_capacity(dims.len());
            for (axis, extent) in dims.into_iter().enumerate() {
                axes.push(match (extent.varies(), steps.index_of_caller_size(&extent)) {
                    (false, _) => None,
                    (true, Some(size)) => Some(size),
                    (true, _) => {
                        Some(given.len() + derived.intern(extent, &format!("{}_{axis}", result.field), &ranges))
                    }
                });
            }
            derived.axes.push(axes);
        }
        derived
    }

    /// Index of the derived size with the expression `extent`, which is added under `name` if it is new.
    fn intern(&mut self, extent: Extent, name: &str, ranges: &[Interval]) -> usize {
        if let Some(known) = self.extents.iter().position(|e| *e == extent) {
            return known;
        }
        let within = extent.extremes(&Interval::lookup_by_index(ranges));
        let end = |n: i128| u64::try_from(n).unwrap_or(0);
        let (a, b) = within.map_or((0, 0), |within| (end(within.least), end(within.most)));
        self.sizes.push(Size { name: name.to_string(), least: a, most: b, is_result: true, is_check: false });
        self.extents.push(extent);
        self.extents.len() - 1
    }

    /// Whether these size expressions are the sizes of `function`'s results, at all sizes of the caller that it covers.
    fn match_results_of(&self, function: &BoundedFunction) -> bool {
        let most = &function.bounds[0];
        let all = most.0.iter().copied().chain(most.1.data_sizes.iter().map(|f| f.1));
        let ranges: Vec<Interval> =
            function.least.iter().zip(all).map(|(&a, b)| Interval::new(a.min(b).into(), b.into())).collect();
        let of = Interval::lookup_by_index(&ranges);
        let is_one = |(a, b): (&Extent, &Extent)| {
            a.sub(b).and_then(|d| d.extremes(&of)).is_some_and(|d| d == Interval::single(0))
        };
        let own = result_dims(&most.1, &function.forms);
        own.len() == self.dims.len()
            && own.iter().zip(&self.dims).all(|(a, b)| a.len() == b.len() && a.iter().zip(b).all(is_one))
    }
}

/// Expressions of the dimensions of each result.
fn result_dims(base: &Lowered, forms: &[ComputationExprs]) -> Vec<Vec<Extent>> {
    let dims = forms.last().and_then(|form| form.root_dims(base.module.entry())).unwrap_or_default();
    dims.iter().take(base.results.len()).cloned().collect()
}

/// Text for messages: the caller's sizes with their ranges.
fn describe_sizes(given: &[Size]) -> String {
    if given.is_empty() {
        return "values at run time say it".to_string();
    }
    given.iter().map(|s| format!("`{}` from {} to {}", s.name, s.least, s.most)).collect::<Vec<_>>().join(", ")
}

fn open_size_error(departure: &SizeObstacle, given: &[Size]) -> Error {
    let told = format!("no code is known for every size ({}): {}", describe_sizes(given), departure.what);
    let d = Diagnostic::new(Code::OpenSize, told)
        .help("give the size as a number, or other bounds such as --dim NAME=2..64");
    let (node, op) = &departure.node;
    if node.is_empty() { d.into() } else { d.at_node(node, op).into() }
}

fn differing_results_error(given: &[Size]) -> Error {
    let told = format!("the results have other sizes where one is the smallest ({})", describe_sizes(given));
    Diagnostic::new(Code::OpenSize, told).help("let the sizes begin at 2: --dim NAME=2..64").into()
}
