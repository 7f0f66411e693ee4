//! Functions whose sizes vary from call to call, up to a bound.
//!
//! A function is lowered once, with sizes that are expressions, and what lowering decided by comparing them is recorded and proved for every
//! size (`once.rs`). The function for the bound becomes a module for every size (`pad/`): arrays have the sizes of the bound, and what is
//! beyond the actual sizes is masked where it could reach a result. A function that there is for each second or eighth size only is
//! lowered in such steps (`steps.rs`). Work is that of the bound; smaller bounds beside it make it follow the sizes.
mod equality;
mod evaluate;
mod extent;
mod form;
mod symbolic_lowering;
mod pad;
mod rows;
mod steps;

pub use evaluate::{evaluate, failed_check};

use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::{Claim, ClaimQuantity, RuntimeCheck};
use crate::lower::{ExactLowering, Lowered, SizeBucket, SizeTracedLowering, SizeVariants};
use crate::symbolic::Interval;
use crate::tensor::{Size, Sizes};
use extent::Extent;
use form::{Departure, Form};
use pad::Padded;
use std::sync::Arc;
use steps::Steps;
use symbolic_lowering::Once;

/// A function for every size up to the bounds: `given` are the sizes that the caller says, `args` the axes of the arguments that have
/// them, `traced` lowers it. Data-dependent sizes vary too.
///
/// # Errors
/// Those of lowering; `Code::OpenSize` where the function is another one for other sizes, or does what is not known to be
/// right for padded arrays.
pub fn lower(given: &[Size], args: Vec<Vec<Option<usize>>>, traced: &SizeTracedLowering) -> Result<Lowered> {
    let steps = Steps::of(given, traced)?;
    let way = Way { traced, steps: &steps, args: &args };
    let (function, derived, mut all, exact) = way.lowered(&steps.counted(given))?;
    let (_, largest) = &function.bounds[0];
    let module = all.remove(0).module;
    let largest = Lowered { module, data_sizes: Vec::new(), ..largest.clone() };
    if derived.sizes.is_empty() && given.is_empty() && largest.claims.is_empty() {
        return Ok(largest);
    }
    let follows = derived.sizes.is_empty() && function.found() == 0 && largest.claims.is_empty();
    let one_size = given.len() == 1 && follows && function.apart.is_empty() && steps.all[0].is_one();
    let base = &function.bounds[0].1;
    let by_rows = one_size && rows::are_rows(base, &Form::of_alike(&function.forms, &base.module), &args);
    let least: Vec<u64> = function.given.iter().map(|s| s.least).collect();
    let sound = given.iter().zip(steps.sizes(&least)).map(|(s, least)| Size { least, ..s.clone() });
    let sound: Vec<Size> = sound.collect();
    let asked = asked(&[&largest.claims[..], &steps.claims(given)].concat());
    let sizes = Sizes { all: [&sound[..], &derived.sizes, &asked].concat(), args, results: derived.axes.clone() };
    Ok(Lowered { size_variants: Some(Arc::new(SizeVariants { sizes, by_rows, smaller: all, exact })), ..largest })
}

/// A function for every size but some.
struct Function {
    /// The sizes that the caller says, counted in steps.
    given: Vec<Size>,
    /// The least of each size, those that values say behind those.
    least: Vec<u64>,
    /// Bounds of the sizes that the caller says, largest first, with the function for exactly them.
    bounds: Vec<(Vec<u64>, Lowered)>,
    /// The expressions of its numbers, computation by computation.
    forms: Vec<Form>,
    /// The sizes that the caller says, by their numbers, at whose smallest value it is another function.
    apart: Vec<usize>,
}

impl Function {
    /// How many sizes values say.
    fn found(&self) -> usize {
        self.least.len() - self.given.len()
    }

    /// The function for each of its bounds, largest first; it gives back the sizes that `derived` says.
    fn buckets(&self, derived: &Derived, steps: &Steps) -> Result<Vec<SizeBucket>> {
        let given = &self.given[..];
        let one = |(most, lowered): &(Vec<u64>, Lowered)| {
            let own = Form::of_alike(&self.forms, &lowered.module);
            let all: Vec<u64> = most.iter().copied().chain(lowered.data_sizes.iter().map(|f| f.1)).collect();
            let ends = self.least.iter().zip(&all);
            let ranges: Vec<Interval> = ends.map(|(&a, &b)| Interval::new(a.min(b).into(), b.into())).collect();
            let padded = Padded {
                module: &lowered.module,
                forms: &own,
                steps,
                found: self.found(),
                ranges,
                args: lowered.args.len(),
                results: (lowered.results.len(), &derived.extents),
                claims: lowered.claims.len(),
            };
            let module = padded.module().map_err(|d| refusal(&d, given))?;
            let results = lowered.results.iter().map(|r| r.dims.clone()).collect();
            Ok(SizeBucket { max_sizes: steps.sizes(most), module, results, is_separate: false })
        };
        self.bounds.iter().map(one).collect()
    }
}

/// How a function is lowered.
#[derive(Clone, Copy)]
struct Way<'a> {
    traced: &'a SizeTracedLowering,
    steps: &'a Steps,
    /// The axes of the arguments that have the sizes that the caller says.
    args: &'a [Vec<Option<usize>>],
}

/// A function, the sizes of its results, the modules for it and for the sizes at which it is another one, and what it is for exactly
/// some sizes.
type Found = (Function, Derived, Vec<SizeBucket>, ExactLowering);

impl Way<'_> {
    /// The function for sizes counted in steps.
    fn lowered(self, given: &[Size]) -> Result<Found> {
        let (first, function) = self.once(given, true)?;
        let mut each = vec![first];
        let derived = Derived::of(&function.bounds[0].1, &function.forms, &function.given, self.steps);
        let mut all = function.buckets(&derived, self.steps)?;
        let mut todo: Vec<(Vec<Size>, usize)> =
            function.apart.iter().map(|&size| (function.given.clone(), size)).collect();
        while let Some((mut given, size)) = todo.pop() {
            given[size].most = given[size].least;
            let (once, own) = self.once(&given, false)?;
            each.push(once);
            if !derived.are_dims(&own) {
                return Err(other_results(&own.given));
            }
            let buckets = own.buckets(&derived, self.steps)?;
            all.extend(buckets.into_iter().map(|bucket| SizeBucket { is_separate: true, ..bucket }));
            todo.extend(own.apart.iter().map(|&other| (own.given.clone(), other)));
        }
        Ok((function, derived, all, self.exactly(each)))
    }

    /// A function for exactly some sizes; `each` are the functions that serve them, those of smallest sizes behind the others.
    fn exactly(self, each: Vec<Once>) -> ExactLowering {
        let (steps, args) = (self.steps.clone(), self.args.to_vec());
        ExactLowering(Arc::new(move |sizes| {
            let counts = steps.counts(sizes)?;
            let once = each.iter().rev().find(|once| once.serves(&counts));
            once.and_then(|once| once.exact(&counts, &steps, &args)).ok_or_else(|| {
                Diagnostic::new(Code::BadInputs, format!("there is no function for the sizes {sizes:?}")).into()
            })
        }))
    }

    /// The function of one lowering, and what it is for its bounds.
    fn once(self, given: &[Size], with_halves: bool) -> Result<(Once, Function)> {
        let given = self.steps.sound(given, self.traced);
        let once = Once::new(&given, self.traced, self.steps)?;
        let most: Vec<u64> = given.iter().map(|s| s.most).collect();
        let halves = if with_halves { halves(&given) } else { Vec::new() };
        let at = |most: Vec<u64>| {
            let departure = || Departure { node: Default::default(), what: "a size is beyond 63 bits".to_string() };
            let lowered = once.bound(&most, self.steps, self.args).ok_or_else(|| refusal(&departure(), &given))?;
            Ok((most, lowered))
        };
        let bounds = std::iter::once(most).chain(halves).map(at).collect::<Result<Vec<_>>>()?;
        let least = given.iter().map(|s| s.least).chain(once.ranges.iter().skip(given.len()).map(|_| 0)).collect();
        let (forms, apart) = (once.forms.clone(), once.apart.clone());
        Ok((once, Function { given, least, bounds, forms, apart }))
    }
}

/// At most so many bounds a function is compiled for.
const MOST_RUNGS: usize = 8;

/// Bounds below the largest: halves, down to the smallest.
fn halves(given: &[Size]) -> Vec<Vec<u64>> {
    let mut out: Vec<Vec<u64>> = Vec::new();
    let mut last: Vec<u64> = given.iter().map(|s| s.most).collect();
    let least: Vec<u64> = given.iter().map(|s| s.least).collect();
    while last != least && out.len() + 1 < MOST_RUNGS {
        last = last.iter().zip(&least).map(|(n, &least)| n.div_ceil(2).max(least)).collect();
        out.push(last.clone());
    }
    if last != least && least.iter().all(|&n| n <= 1) {
        out.push(least);
    }
    out
}

/// Run-time checks as sizes that a call gives back, each with its capacity. A node that is reached more than once has a
/// number behind its name.
fn asked(claims: &[Claim]) -> Vec<Size> {
    let mut out: Vec<Size> = Vec::with_capacity(claims.len());
    for Claim { node, most, quantity, .. } in claims {
        let node = &match quantity {
            ClaimQuantity::Check(check) => check_name(node, *check),
            ClaimQuantity::Size | ClaimQuantity::Rounds => node.clone(),
        };
        let name = (1..).map(|n| if n == 1 { node.clone() } else { format!("{node}_{n}") });
        let name = name.into_iter().find(|name| out.iter().all(|s| s.name != *name)).unwrap_or_default();
        out.push(Size {
            name,
            least: 0,
            most: *most,
            is_result: true,
            is_check: matches!(quantity, ClaimQuantity::Check(_)),
        });
    }
    out
}

/// The name of a check: the node and what is wrong with it.
pub fn check_name(node: &str, check: RuntimeCheck) -> String {
    format!("{node}: {}", check.words())
}

/// The sizes of results that the caller does not say.
struct Derived {
    extents: Vec<Extent>,
    sizes: Vec<Size>,
    /// For each result the size of each axis.
    axes: Vec<Vec<Option<usize>>>,
    /// For each result each axis.
    dims: Vec<Vec<Extent>>,
}

impl Derived {
    fn of(base: &Lowered, forms: &[Form], given: &[Size], steps: &Steps) -> Derived {
        let dims = result_dims(base, forms);
        let mut derived = Derived { extents: Vec::new(), sizes: Vec::new(), axes: Vec::new(), dims: dims.clone() };
        let found = base.data_sizes.iter();
        let range = |least: u64, most: u64| Interval::new(least.min(most).into(), most.into());
        let ranges = given.iter().map(|s| range(s.least, s.most)).chain(found.map(|f| range(0, f.1)));
        let ranges: Vec<Interval> = ranges.collect();
        for (result, dims) in base.results.iter().zip(dims) {
            let mut axes = Vec::with_capacity(dims.len());
            for (axis, extent) in dims.into_iter().enumerate() {
                axes.push(match (extent.varies(), steps.size_of(&extent)) {
                    (false, _) => None,
                    (true, Some(size)) => Some(size),
                    (true, _) => {
                        Some(given.len() + derived.number(extent, &format!("{}_{axis}", result.field), &ranges))
                    }
                });
            }
            derived.axes.push(axes);
        }
        derived
    }

    /// The number of the size that `extent` is.
    fn number(&mut self, extent: Extent, name: &str, ranges: &[Interval]) -> usize {
        if let Some(known) = self.extents.iter().position(|e| *e == extent) {
            return known;
        }
        let within = extent.extremes(&Interval::of_each(ranges));
        let end = |n: i128| u64::try_from(n).unwrap_or(0);
        let (a, b) = within.map_or((0, 0), |within| (end(within.least), end(within.most)));
        self.sizes.push(Size { name: name.to_string(), least: a, most: b, is_result: true, is_check: false });
        self.extents.push(extent);
        self.extents.len() - 1
    }

    /// Whether the results of a function have these sizes, for all of its sizes.
    fn are_dims(&self, function: &Function) -> bool {
        let most = &function.bounds[0];
        let all = most.0.iter().copied().chain(most.1.data_sizes.iter().map(|f| f.1));
        let ranges: Vec<Interval> =
            function.least.iter().zip(all).map(|(&a, b)| Interval::new(a.min(b).into(), b.into())).collect();
        let of = Interval::of_each(&ranges);
        let is_one =
            |(a, b): (&Extent, &Extent)| a.sub(b).and_then(|d| d.extremes(&of)).is_some_and(|d| d == Interval::one(0));
        let own = result_dims(&most.1, &function.forms);
        own.len() == self.dims.len()
            && own.iter().zip(&self.dims).all(|(a, b)| a.len() == b.len() && a.iter().zip(b).all(is_one))
    }
}

/// The sizes of each result, as they follow from those of the function.
fn result_dims(base: &Lowered, forms: &[Form]) -> Vec<Vec<Extent>> {
    let dims = forms.last().and_then(|form| form.of_root(base.module.entry())).unwrap_or_default();
    dims.iter().take(base.results.len()).cloned().collect()
}

/// The sizes that the caller says, with their bounds.
fn spelled(given: &[Size]) -> String {
    if given.is_empty() {
        return "values at run time say it".to_string();
    }
    given.iter().map(|s| format!("`{}` from {} to {}", s.name, s.least, s.most)).collect::<Vec<_>>().join(", ")
}

fn refusal(departure: &Departure, given: &[Size]) -> Error {
    let told = format!("no code is known for every size ({}): {}", spelled(given), departure.what);
    let d = Diagnostic::new(Code::OpenSize, told)
        .help("give the size as a number, or other bounds such as --dim NAME=2..64");
    let (node, op) = &departure.node;
    if node.is_empty() { d.into() } else { d.at_node(node, op).into() }
}

fn other_results(given: &[Size]) -> Error {
    let told = format!("the results have other sizes where one is the smallest ({})", spelled(given));
    Diagnostic::new(Code::OpenSize, told).help("let the sizes begin at 2: --dim NAME=2..64").into()
}
