//! Functions whose sizes vary from call to call, up to a bound.
//!
//! A function is lowered at several sizes, as if each were the only one. Where these instances are one function but for numbers
//! (`instance.rs`), the numbers are found as formulas of the sizes (`fit.rs`, `extent.rs`), and the instance for the bound becomes a module for every
//! size (`pad/`): arrays have the sizes of the bound, and what is beyond the actual sizes is masked where it could reach a result. So
//! ops know nothing of sizes that vary. A function that there is for each second or eighth size only is looked at in such steps (`steps.rs`). Work is that of the bound; a ladder of smaller bounds makes it follow the sizes.
mod audit;
mod degenerate;
mod evaluate;
mod extent;
mod fit;
mod instance;
mod instances;
mod level;
mod pad;
mod room;
mod rows;
mod steps;

pub use evaluate::{evaluate, failed_check};

use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::{Asked, Check, Claim};
use crate::lower::{Exact, Lowered, Rung, Sized, Traced};
use crate::symbolic::Interval;
use crate::tensor::{Size, Sizes};
use extent::Extent;
use instance::{Departure, Form};
use instances::{Instances, has_dims, result_dims};
use pad::Padded;
use std::sync::Arc;
use steps::Steps;

/// A function for every size up to the bounds: `given` are the sizes that the caller says, `args` the axes of the arguments that have
/// them, `exact` lowers it for exactly some of them. Sizes that values say vary too.
///
/// # Errors
/// Those of lowering; `Code::OpenSize` where the function is another one for other sizes, or does what is not known to be
/// right for padded arrays.
pub fn lower(given: &[Size], args: Vec<Vec<Option<usize>>>, exact: Exact, traced: Option<&Traced>) -> Result<Lowered> {
    let most: Vec<u64> = given.iter().map(|s| s.most).collect();
    (exact.0)(&most)?;
    let steps = Steps::of(given, &exact);
    let of_steps = steps.exact(&exact);
    let mut instances = Instances::new(&steps.counted(given), &of_steps, true)?;
    let forms = instances.settled(&of_steps)?;
    let apart = instances.apart(&forms)?;
    instances.check_decisions()?;
    let way = Way { exact: &of_steps, traced, steps: &steps };
    way.check(&instances, &forms, &apart)?;
    let (_, largest) = &instances.bounds[0];
    let derived = Derived::of(largest, &forms, &instances.given, &steps);
    let mut all = rungs(&instances, &forms, &derived, &steps)?;
    for &size in &apart {
        let own = smallest(&instances.given, size, &way, &derived)?;
        all.extend(own.into_iter().map(|rung| Rung { is_apart: true, ..rung }));
    }
    let module = all.remove(0).module;
    let largest = Lowered { module, found: Vec::new(), ..largest.clone() };
    if derived.sizes.is_empty() && given.is_empty() && largest.claims.is_empty() {
        return Ok(largest);
    }
    let follows = derived.sizes.is_empty() && instances.found == 0 && largest.claims.is_empty();
    let one_size = given.len() == 1 && follows && apart.is_empty() && steps.all[0].is_one();
    let by_rows = one_size
        && rows::are_rows(&instances.bounds[0].1, &Form::of_alike(&forms, &instances.bounds[0].1.module), &args);
    let least: Vec<u64> = instances.given.iter().map(|s| s.least).collect();
    let sound = given.iter().zip(steps.sizes(&least)).map(|(s, least)| Size { least, ..s.clone() });
    let sound: Vec<Size> = sound.collect();
    let asked = asked(&[&largest.claims[..], &steps.claims(given)].concat());
    let sizes = Sizes { all: [&sound[..], &derived.sizes, &asked].concat(), args, results: derived.axes.clone() };
    Ok(Lowered { sized: Some(Arc::new(Sized { sizes, by_rows, smaller: all, exact })), ..largest })
}

/// The function for each of its bounds, largest first; it gives back the sizes that `derived` says. A smaller bound for which smaller
/// sizes need room that can't be given is none.
fn rungs(instances: &Instances, forms: &[Form], derived: &Derived, steps: &Steps) -> Result<Vec<Rung>> {
    let given = &instances.given[..];
    let one = |(most, lowered): &(Vec<u64>, Lowered)| {
        let own = Form::of_alike(forms, &lowered.module);
        let all: Vec<u64> = most.iter().copied().chain(lowered.found.iter().map(|f| f.1)).collect();
        let roomy = match room::given(&lowered.module, &own, &instances.within(&all), &all) {
            Ok(roomy) => roomy,
            Err(departure) if *most == instances.bounds[0].0 => return Err(refusal(&departure, given)),
            Err(_) => return Ok(None),
        };
        let padded = Padded {
            module: roomy.as_ref().unwrap_or(&lowered.module),
            forms: &own,
            points: &instances.points,
            steps,
            found: instances.found,
            ranges: instances.least().zip(all.iter().copied()).collect(),
            args: lowered.args.len(),
            results: (lowered.results.len(), &derived.extents),
            claims: lowered.claims.len(),
        };
        let module = padded.module().map_err(|d| refusal(&d, given))?;
        let results = lowered.results.iter().map(|r| r.dims.clone()).collect();
        Ok(Some(Rung { most: steps.sizes(most), module, results, is_apart: false }))
    };
    instances.bounds.iter().filter_map(|bound| one(bound).transpose()).collect()
}

/// How a function is looked at.
struct Way<'a> {
    /// Lowers it for exactly some sizes, in steps.
    exact: &'a Exact,
    /// Lowers it with sizes that record how they are compared.
    traced: Option<&'a Traced>,
    steps: &'a Steps,
}

impl Way<'_> {
    /// Checks that what lowering chose by comparing sizes holds for every size but the smallest of those in `apart`.
    ///
    /// # Errors
    /// Those of [`audit::check`].
    fn check(&self, instances: &Instances, forms: &[Form], apart: &[usize]) -> Result<()> {
        let Some(Traced(traced)) = self.traced else { return Ok(()) };
        let given = &instances.given;
        let sizes = |of: fn(&Size) -> u64| self.steps.sizes(&given.iter().map(of).collect::<Vec<u64>>());
        let (least, most) = (sizes(|s| s.least), sizes(|s| s.most));
        let ranges: Vec<Interval> = least.iter().zip(&most).map(|(&a, &b)| Interval::new(a.into(), b.into())).collect();
        let at_hand = self.steps.sizes(&instances.points.all[0][..given.len()]);
        let at_hand: Vec<i64> = at_hand.into_iter().map(|n| i64::try_from(n).unwrap_or(i64::MAX)).collect();
        let Some(record) = traced(&ranges, &at_hand) else { return Ok(()) };
        let domain = audit::Domain { counted: given, steps: self.steps, apart };
        audit::check(&record, &domain, (instances, forms), self.exact)
    }
}

/// The function for the smallest value of a size, where it is another one; that serves this value alone, and of others every one.
fn smallest(given: &[Size], size: usize, way: &Way, derived: &Derived) -> Result<Vec<Rung>> {
    let mut given = given.to_vec();
    given[size].most = given[size].least;
    let mut instances = Instances::new(&given, way.exact, false)?;
    let forms = instances.settled(way.exact)?;
    let apart = instances.apart(&forms)?;
    instances.check_decisions()?;
    way.check(&instances, &forms, &apart)?;
    let given = &instances.given[..];
    let alike = instances.each().all(|(sizes, lowered)| derived.same_dims(lowered, sizes));
    alike.then_some(()).ok_or_else(|| other_results(given))?;
    let mut all = rungs(&instances, &forms, derived, way.steps)?;
    for other in apart {
        all.extend(smallest(given, other, way, derived)?);
    }
    Ok(all)
}

/// What a call asks for and there is room for up to a bound, as sizes that the call says. A node that is reached more than once has a
/// number behind its name.
fn asked(claims: &[Claim]) -> Vec<Size> {
    let mut out: Vec<Size> = Vec::with_capacity(claims.len());
    for Claim { node, most, asks, .. } in claims {
        let node = &match asks {
            Asked::Check(check) => check_name(node, *check),
            Asked::Size | Asked::Rounds => node.clone(),
        };
        let name = (1..).map(|n| if n == 1 { node.clone() } else { format!("{node}_{n}") });
        let name = name.into_iter().find(|name| out.iter().all(|s| s.name != *name)).unwrap_or_default();
        out.push(Size { name, least: 0, most: *most, is_result: true, is_check: matches!(asks, Asked::Check(_)) });
    }
    out
}

/// The name of a check: the node and what is wrong with it.
pub fn check_name(node: &str, check: Check) -> String {
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
        let found = base.found.iter();
        let least: Vec<u64> = given.iter().map(|s| s.least).chain(found.clone().map(|_| 0)).collect();
        let most: Vec<u64> = given.iter().map(|s| s.most).chain(found.map(|f| f.1)).collect();
        for (result, dims) in base.results.iter().zip(dims) {
            let mut axes = Vec::with_capacity(dims.len());
            for (axis, extent) in dims.into_iter().enumerate() {
                axes.push(match (extent.varies(), steps.size_of(&extent)) {
                    (false, _) => None,
                    (true, Some(size)) => Some(size),
                    (true, _) => {
                        Some(given.len() + derived.number(extent, &format!("{}_{axis}", result.field), (&least, &most)))
                    }
                });
            }
            derived.axes.push(axes);
        }
        derived
    }

    /// The number of the size that `extent` is.
    fn number(&mut self, extent: Extent, name: &str, (least, most): (&[u64], &[u64])) -> usize {
        if let Some(known) = self.extents.iter().position(|e| *e == extent) {
            return known;
        }
        let at = |sizes: &[u64]| extent.at(sizes).and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        let (a, b) = (at(least), at(most));
        self.sizes.push(Size {
            name: name.to_string(),
            least: a.min(b),
            most: a.max(b),
            is_result: true,
            is_check: false,
        });
        self.extents.push(extent);
        self.extents.len() - 1
    }

    /// Whether the results of `lowered` have the sizes that these extents have for `sizes`.
    fn same_dims(&self, lowered: &Lowered, sizes: &[u64]) -> bool {
        has_dims(lowered, &self.dims, sizes)
    }
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
