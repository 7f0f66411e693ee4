//! Modules with dynamic sizes (StableHLO `?` and symbolic dimensions): binds the sizes, and lowers the module for them.
use super::module::lower_source;
use crate::bounded;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::Source;
use crate::hlo::SymbolicArray;
use crate::hlo::stablehlo::{Argument, AxisSize, DynamicModule, Host};
use crate::hlo::symbolic::{Builder, ForeignOp, InstId, Op, Shape};
use crate::interp;
use crate::lower::{Lowered, SizeRecordingLowering, SymbolicLowering, bind_argument_dims};
use crate::ops::{element, lapack};
use crate::prepare::{Binding, FeedSpec, Request, VaryingSizes, is_default_binding, sanitize_size_name};
use crate::symbolic::{Dim, constant_dims};
use crate::tensor::Size;

/// Lowers a module for the sizes in the request: numbers, bounds, or both.
///
/// Errors: `Code::UnknownDim` for sizes missing in the request; `Code::BadOption` for options that make no sense for a module; those of the
/// module and of [`bounded::lower`].
pub(super) fn lower_dynamic_module(open: DynamicModule, request: &Request) -> Result<Lowered> {
    let RequestedSizes { dims, axes, sizes } = RequestedSizes::of(&open, request)?;
    if sizes.is_empty() {
        return lower_source(instantiate(&open, &dims)?);
    }
    let own = axes.clone();
    let traced = SizeRecordingLowering::new(move |said| {
        let dims = bind_argument_dims(dims.iter().map(Vec::as_slice), &own, said);
        instantiate_symbolic(&open, &dims)
    });
    bounded::lower(&sizes, axes, &traced)
}

/// Instantiates a module at the sizes in the request, all of which must be numbers.
///
/// Errors: as for [`lower_dynamic_module`]; `Code::BadOption` for bounds.
pub(super) fn instantiate_at_sizes(open: &DynamicModule, request: &Request) -> Result<Source> {
    let RequestedSizes { dims, sizes, .. } = RequestedSizes::of(open, request)?;
    match sizes.first() {
        None => instantiate(open, &dims),
        Some(size) => {
            let told = format!("the size `{}` has a bound, and one module is of one size", size.name);
            Err(Diagnostic::new(Code::BadOption, told)
                .help("`compile`, `run`, `verify` and `bench` take bounds")
                .into())
        }
    }
}

fn instantiate(open: &DynamicModule, dims: &[Vec<u64>]) -> Result<Source> {
    let mut host = FoldingHost(Builder::new(open.name()));
    let dims: Vec<Vec<Dim>> = dims.iter().map(|dims| constant_dims(dims)).collect();
    let root = open.root(&mut host, &dims)?;
    open.source(host.0.finish(root)?.at_current_sizes())
}

/// Lowers a module once with symbols for its dynamic sizes.
fn instantiate_symbolic(open: &DynamicModule, dims: &[Vec<Dim>]) -> Result<SymbolicLowering> {
    let mut host = FoldingHost(Builder::new(open.name()));
    let root = open.root(&mut host, dims)?;
    let parts = match host.0.current_computation()[root].op {
        Op::Tuple => host.0.current_computation()[root].operands.clone(),
        _ => vec![root],
    };
    let root = host.0.tuple(&parts);
    let module = host.0.finish(root)?;
    let lowered = lower_source(open.source(module.at_current_sizes())?)?;
    Ok(SymbolicLowering {
        lowered: Lowered { module: module.at_current_sizes(), ..lowered },
        module,
        sizes: Vec::new(),
    })
}

/// Builder that evaluates what is computed from constants and sizes.
struct FoldingHost(Builder);

impl Host for FoldingHost {
    fn builder(&mut self) -> &mut Builder {
        &mut self.0
    }
    fn known(&mut self, id: InstId) -> Option<SymbolicArray> {
        interp::symbolic_value(&self.0, id)
    }
    fn difference(&mut self, of: InstId, less: InstId, at: Dim) -> Option<Dim> {
        let b = &self.0;
        element::element_expr(b, of, at).sub(&element::element_expr(b, less, at))?.as_size()
    }
    fn call(&mut self, _: i64, _: &[InstId]) -> Result<Vec<InstId>> {
        let told = "the module calls a function of a graph, and there is no graph around it";
        Err(Error::user(Code::HloUnsupported, told))
    }
    fn custom_call(&mut self, call: &ForeignOp, operands: &[InstId], shape: &Shape) -> Result<Option<InstId>> {
        lapack::lower_lapack_call(&mut self.0, call, operands, shape)
    }
}

/// Sizes of a module's arguments according to a request.
struct RequestedSizes {
    /// Dimensions of each argument, the upper bound along dynamic axes.
    dims: Vec<Vec<u64>>,
    /// Index into `sizes` of the size of each axis; `None` for fixed axes.
    axes: Vec<Vec<Option<usize>>>,
    sizes: Vec<Size>,
}

impl RequestedSizes {
    fn of(open: &DynamicModule, request: &Request) -> Result<RequestedSizes> {
        if !request.fetches.is_empty() || !request.signatures.is_empty() {
            let told = "a module has its arguments and results; none can be chosen";
            return Err(Diagnostic::new(Code::BadOption, told)
                .help("without --fetch, --signature and --config")
                .into());
        }
        let is_known =
            |feed: &&FeedSpec| !open.args.iter().enumerate().any(|(i, a)| is_argument_name(a, i, &feed.name));
        if let Some(feed) = request.feeds.iter().find(is_known) {
            let told = format!("the module has no argument `{}`", feed.name);
            return Err(Error::user(Code::BadOption, told));
        }
        if let Some(feed) = request.feeds.iter().find(|feed| feed.value.is_some()) {
            let told =
                format!("`{}` is an argument of a module: only those of graphs can be told as values", feed.name);
            return Err(Error::user(Code::BadOption, told));
        }
        let mut used = vec![false; request.dims.len()];
        let mut varying = VaryingSizes::default();
        let mut asked = RequestedSizes { dims: Vec::new(), axes: Vec::new(), sizes: Vec::new() };
        for (place, arg) in open.args.iter().enumerate() {
            let feed = request.feeds.iter().rfind(|feed| is_argument_name(arg, place, &feed.name));
            if let Some(feed) = feed {
                check_feed_fits(arg, feed)?;
            }
            let (mut dims, mut axes) = (Vec::new(), Vec::new());
            for (i, axis) in arg.axes.iter().enumerate() {
                let said = match axis {
                    AxisSize::Fixed(n) => Some(Binding::Size(*n)),
                    _ => {
                        binding_of_feed(feed, i).or_else(|| binding_of_dims(&request.dims, &mut used, arg, (place, i)))
                    }
                };
                let (size, number) = match said.ok_or_else(|| open.unknown_size_error())? {
                    Binding::Size(n) => (n, None),
                    Binding::Bound(bound) => {
                        let number = varying.find_or_add_size(&bound, &default_name(arg, i));
                        let number = number.map_err(|what| Error::user(Code::BadOption, format!("the size {what}")))?;
                        (bound.most, Some(number))
                    }
                };
                dims.push(size);
                axes.push(number);
            }
            asked.dims.push(dims);
            asked.axes.push(axes);
        }
        let mut unused =
            request.dims.iter().zip(&used).filter(|((name, _), used)| !**used && !is_default_binding(name));
        if let Some(((name, _), _)) = unused.next() {
            let told = format!("`--dim {name}=` binds no open size of the module");
            return Err(Error::user(Code::BadOption, told));
        }
        asked.sizes = varying.sizes;
        Ok(asked)
    }
}

/// Whether `name` denotes an argument, by name or by position.
fn is_argument_name(arg: &Argument, place: usize, name: &str) -> bool {
    arg.name == name || place.to_string() == name
}

/// Checks that a feed has the type and the fixed sizes of the argument. Errors: `Code::ShapeMismatch`.
fn check_feed_fits(arg: &Argument, feed: &FeedSpec) -> Result<()> {
    let same = |(axis, dim): (&AxisSize, &Option<u64>)| match (axis, dim) {
        (AxisSize::Fixed(n), Some(dim)) => n == dim,
        _ => true,
    };
    let dims = |dims: &Vec<Option<u64>>| dims.len() == arg.axes.len() && arg.axes.iter().zip(dims).all(same);
    if feed.dtype.is_none_or(|t| t == arg.dtype) && feed.dims.as_ref().is_none_or(dims) {
        return Ok(());
    }
    Err(Error::user(Code::ShapeMismatch, format!("the argument is {arg}, which `--feed {}` does not fit", feed.name)))
}

/// Size or bound of axis `i` in a feed's specification.
fn binding_of_feed(feed: Option<&FeedSpec>, i: usize) -> Option<Binding> {
    let feed = feed?;
    let size = feed.dims.as_ref().and_then(|dims| dims.get(i).copied().flatten()).map(Binding::Size);
    size.or_else(|| feed.bounds.get(i).cloned().flatten().map(Binding::Bound))
}

/// Size or bound of an axis in the `--dim` options; the most specific option wins.
fn binding_of_dims(
    dims: &[(String, Binding)],
    used: &mut [bool],
    arg: &Argument,
    (place, i): (usize, usize),
) -> Option<Binding> {
    let exact = [format!("{}[{i}]", arg.name), format!("{place}[{i}]")];
    let at_place = format!("?[{i}]");
    let forms: [&dyn Fn(&str) -> bool; 7] = [
        &|name| exact.iter().any(|e| e == name),
        &|name| matches!(&arg.axes[i], AxisSize::Named(own) if own == name),
        &|name| is_argument_name(arg, place, name),
        &|name| name == "batch" && i == 0,
        &|name| name.is_empty(),
        &|name| name == at_place,
        &|name| name == "?",
    ];
    let at = forms.iter().find_map(|form| dims.iter().rposition(|(name, _)| form(name)))?;
    used[at] = true;
    let (name, binding) = &dims[at];
    // sizes with a name in the module are told apart by it
    let is_named = matches!(arg.axes[i], AxisSize::Named(_));
    Some(if is_named { binding.clone() } else { binding.for_axis(name, i) })
}

/// Default name for the size of an axis whose bound has no name.
fn default_name(arg: &Argument, i: usize) -> String {
    match &arg.axes[i] {
        AxisSize::Named(name) => sanitize_size_name(name),
        _ => format!("{}_{i}", sanitize_size_name(&arg.name)),
    }
}
