//! Resolution of the type and dimensions of each feed, from the request and from the graph.
use super::binding::{VaryingSizes, is_default_binding};
use super::c_field_names;
use super::defaults::{UnresolvedFeed, tensor_name};
use super::{Binding, DimBound};
use crate::diag::{Code, Diagnostic, Error};
use crate::graph::{Attr, Node, PartialShape, Program, TfType};
use crate::hlo::ArrayShape;
use crate::hlo::text::parse_array_elements;
use crate::infer::FeedFacts;
use crate::lower::Feed;
use crate::tensor::{DType, Size, Tensor, TensorInfo};

/// Upper bound on the size of an argument, in bytes.
const MAX_BYTES: u64 = 1 << 34;

/// Producer versions that wrote Placeholders of unknown shape as scalars.
const SCALAR_IS_UNKNOWN: std::ops::RangeInclusive<i32> = 1..=21;

/// Resolved feeds: arguments with their upper bounds and dynamic sizes, and constants.
pub struct ResolvedShapes {
    /// Arguments, in order.
    pub feeds: Vec<Feed>,
    /// Dynamic sizes.
    pub sizes: Vec<Size>,
    /// Index into `sizes` of each axis of each argument; `None` for fixed axes.
    pub axes: Vec<Vec<Option<usize>>>,
    /// Feeds with a constant value, which are no arguments.
    pub values: Vec<FeedFacts>,
}

/// Resolves type and dimensions of all feeds. `bound` holds the `--dim` options, and `used` marks those that matched. Choices that the
/// user did not make are appended to `assumptions`. Errors of all feeds are collected: `UnknownDim`, `UnsupportedType`, `TooLarge`,
/// `BadOption`.
pub fn resolve_shapes(
    program: &Program,
    asked: &[UnresolvedFeed],
    bound: &[(String, Binding)],
    used: &mut [bool],
    assumptions: &mut Vec<String>,
) -> Result<ResolvedShapes, Error> {
    let (told_values, asked): (Vec<&UnresolvedFeed>, Vec<&UnresolvedFeed>) =
        asked.iter().partition(|a| a.spec.value.is_some());
    let names: Vec<String> = asked.iter().map(|a| a.display_name(program)).collect();
    let mut bindings = Bindings { bound, used };
    let (mut feeds, mut axes, mut values, mut bad) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for asked in told_values {
        match constant_value(program, asked) {
            Ok(tensor) => values.extend(tensor.map(|tensor| constant_facts(asked, tensor))),
            Err(d) => bad.push(d),
        }
    }
    let mut varying = VaryingSizes::default();
    for ((asked, name), field) in asked.into_iter().zip(&names).zip(c_field_names(&names)) {
        let dtype = resolve_dtype(program, asked, name);
        let dims = resolve_dims(program, asked, name, &field, &mut bindings, &mut varying, assumptions);
        match (dtype, dims) {
            (Ok(dtype), Ok((dims, own))) => {
                let name = tensor_name(program, asked.at);
                let info = TensorInfo { name, called: asked.called.clone(), field, dtype, dims };
                feeds.push(Feed { at: asked.at, info });
                axes.push(own);
            }
            (Err(d), Ok(_)) | (Ok(_), Err(d)) => bad.push(d),
            (Err(d), Err(e)) => bad.extend([d, e]),
        }
    }
    bad.extend(feeds.iter().filter(|f| f.info.bytes() > MAX_BYTES).map(|f| {
        Diagnostic::new(
            Code::TooLarge,
            format!("the feed `{}` is {}, which is more than 2^34 bytes", f.info.display_name(), f.info.type_text()),
        )
    }));
    if bad.is_empty() {
        Ok(ResolvedShapes { feeds, sizes: varying.sizes, axes, values })
    } else {
        Err(Error::User(bad))
    }
}

/// Checks that every `--dim` option was used. Errors: `BadOption` for each that was not.
pub fn check_bindings_used(bound: &[(String, Binding)], used: &[bool]) -> Result<(), Error> {
    let unused = bound
        .iter()
        .zip(used)
        .filter(|((name, _), used)| !**used && !is_default_binding(name))
        .map(|(binding, _)| binding);
    let told = |(name, size): &(String, Binding)| {
        let size = match size {
            Binding::Size(size) => size.to_string(),
            Binding::Bound(bound) => format!("{}..{}", bound.least, bound.most),
        };
        let flag = if name.is_empty() { format!("--dim {size}") } else { format!("--dim {name}={size}") };
        Diagnostic::new(Code::BadOption, format!("`{flag}` binds no unknown dimension"))
            .help(format!("{DIM_HELP}; a number alone binds all of them"))
    };
    let bad: Vec<Diagnostic> = unused.map(told).collect();
    if bad.is_empty() { Ok(()) } else { Err(Error::User(bad)) }
}

const DIM_HELP: &str = "give --feed NAME=f32[1,224,224,3], or --dim with `batch`, a feed's name, or `NAME[1]`";

fn resolve_dtype(program: &Program, asked: &UnresolvedFeed, name: &str) -> Result<DType, Diagnostic> {
    if let Some(dtype) = asked.spec.dtype {
        return Ok(dtype);
    }
    let node = &program.graph.nodes[asked.at.node];
    let attr = match &*node.op {
        "Placeholder" | "PlaceholderV2" | "PlaceholderWithDefault" | "Const" => "dtype",
        "Cast" => "DstT",
        "Identity" | "StopGradient" | "Reshape" | "Snapshot" | "_Arg" => "T",
        _ => "",
    };
    match node.tf_type(attr) {
        Some(TfType::Data(dtype)) => Ok(dtype),
        Some(other) => Err(Diagnostic::new(
            Code::UnsupportedType,
            format!("the feed `{name}` is of type {other}, which compiled code can't hold"),
        )
        .help("feed the tensors that are computed from it")
        .at_node(&node.name, &node.op)),
        None => Err(Diagnostic::new(Code::BadOption, format!("the type of the feed `{name}` is not known"))
            .help(format!("give it: --feed {name}=f32[1,8]"))
            .at_node(&node.name, &node.op)),
    }
}

/// Shape of a feed according to the graph.
fn graph_shape(program: &Program, asked: &UnresolvedFeed) -> PartialShape {
    let node: &Node = &program.graph.nodes[asked.at.node];
    if let (0, Some(Attr::Shape(shape))) = (asked.at.port, node.attr("shape")) {
        let scalar = shape.0.as_ref().is_some_and(|dims| dims.is_empty());
        if !(scalar && SCALAR_IS_UNKNOWN.contains(&program.producer)) {
            return shape.clone();
        }
    }
    if let (0, Some(Attr::Tensor(tensor))) = (asked.at.port, node.attr("value")) {
        return PartialShape(Some(tensor.dims.iter().copied().map(Some).collect()));
    }
    match node.attr("_output_shapes") {
        Some(Attr::Shapes(shapes)) => shapes.get(asked.at.port as usize).cloned().unwrap_or_default(),
        _ => PartialShape(None),
    }
}

/// Shape of a feed according to the request and the graph, before `--dim` options are applied.
fn declared_shape(program: &Program, asked: &UnresolvedFeed) -> PartialShape {
    let known = graph_shape(program, asked).0;
    PartialShape(match (&asked.spec.dims, known) {
        (Some(given), Some(known)) if given.len() == known.len() => {
            let bounded = |i: usize| asked.spec.bounds.get(i).is_some_and(Option::is_some);
            let one = |(i, (g, k)): (usize, (&Option<u64>, Option<u64>))| g.or(k.filter(|_| !bounded(i)));
            Some(given.iter().zip(known).enumerate().map(one).collect())
        }
        (Some(given), _) => Some(given.clone()),
        (None, known) => known,
    })
}

/// Constant value that the user gives for a feed; `None` for an argument. Errors: `BadOption` if the text is no value of the feed's type and
/// shape.
fn constant_value(program: &Program, asked: &UnresolvedFeed) -> Result<Option<Tensor>, Diagnostic> {
    let Some(text) = &asked.spec.value else { return Ok(None) };
    let (name, node) = (asked.display_name(program), &program.graph.nodes[asked.at.node]);
    let dtype = resolve_dtype(program, asked, &name)?;
    let bad = |what: String| {
        let of = format!("`{text}` is no value of the feed `{name}`");
        Diagnostic::new(Code::BadOption, format!("{of}: {what}")).at_node(&node.name, &node.op)
    };
    let dims: Option<Vec<u64>> = asked.spec.dims.iter().flatten().copied().collect();
    let shape = ArrayShape::new(dtype, dims.unwrap_or_default());
    let known = graph_shape(program, asked);
    let fits = |dims: &Vec<Option<u64>>| {
        dims.len() == shape.rank()
            && dims.iter().zip(&shape.dims).all(|(known, given)| known.is_none_or(|k| k == *given))
    };
    if !known.0.as_ref().is_none_or(fits) {
        return Err(bad(format!("it is {shape}, and the feed is {dtype}{known}")));
    }
    let parsed = parse_array_elements(text, shape);
    parsed.map(Some).map_err(|e| bad(e.into_diagnostics().first().map_or(String::new(), |d| d.message.clone())))
}

fn constant_facts(asked: &UnresolvedFeed, tensor: Tensor) -> FeedFacts {
    let shape = PartialShape(Some(tensor.dims.iter().copied().map(Some).collect()));
    let (dtype, sizes) = (Some(TfType::Data(tensor.dtype)), Vec::new());
    FeedFacts { at: asked.at, dtype, shape, sizes, value: Some(tensor) }
}

/// Type, shape and constant value of each feed, and the sizes that have bounds. Makes no assumptions: unknown dimensions stay unknown.
///
/// Errors: `BadOption` for a size with two different bounds.
pub fn partial_shapes(
    program: &Program,
    asked: &[UnresolvedFeed],
    bound: &[(String, Binding)],
) -> Result<(Vec<FeedFacts>, Vec<Size>), Diagnostic> {
    let mut used = vec![false; bound.len()];
    let mut bindings = Bindings { bound, used: &mut used };
    let mut varying = VaryingSizes::default();
    let mut given = Vec::with_capacity(asked.len());
    let names: Vec<String> = asked.iter().map(|a| a.display_name(program)).collect();
    for (asked, field) in asked.iter().zip(c_field_names(&names)) {
        if let Some(tensor) = constant_value(program, asked)? {
            given.push(constant_facts(asked, tensor));
            continue;
        }
        let name = tensor_name(program, asked.at);
        let node = &program.graph.nodes[asked.at.node];
        let told = declared_shape(program, asked).0;
        let (mut dims, mut sizes) = (Vec::new(), Vec::new());
        for (i, dim) in told.iter().flatten().enumerate() {
            let (size, number) = match bindings.binding_of(asked, &node.name, &name, i, *dim) {
                Some(Binding::Size(size)) => (Some(size), None),
                Some(Binding::Bound(bound)) => (None, Some(size_index(&mut varying, &bound, &field, i, node)?)),
                None => (None, None),
            };
            dims.push(size);
            sizes.push(number);
        }
        let dtype = resolve_dtype(program, asked, &name).ok().map(TfType::Data).or_else(|| node.tf_type("dtype"));
        let shape = PartialShape(told.map(|_| dims));
        given.push(FeedFacts { at: asked.at, dtype, shape, sizes, value: None });
    }
    Ok((given, varying.sizes))
}

/// Index of the dynamic size of dimension `i` of a feed. Errors: `BadOption` for a second, different bound of the same name.
fn size_index(
    varying: &mut VaryingSizes,
    bound: &DimBound,
    field: &str,
    i: usize,
    node: &Node,
) -> Result<usize, Diagnostic> {
    let conflict = |what| Diagnostic::new(Code::BadOption, format!("the size {what}")).at_node(&node.name, &node.op);
    varying.find_or_add_size(bound, &format!("{field}_{i}")).map_err(conflict)
}

fn resolve_dims(
    program: &Program,
    asked: &UnresolvedFeed,
    name: &str,
    field: &str,
    bindings: &mut Bindings,
    varying: &mut VaryingSizes,
    assumptions: &mut Vec<String>,
) -> Result<(Vec<u64>, Vec<Option<usize>>), Diagnostic> {
    let node = &program.graph.nodes[asked.at.node];
    let tensor = tensor_name(program, asked.at);
    let Some(shape) = declared_shape(program, asked).0 else {
        return Err(Diagnostic::new(Code::UnknownDim, format!("the shape of the feed `{name}` is not known"))
            .help(format!("give it: --feed {name}=f32[1,224,224,3]"))
            .at_node(&node.name, &node.op));
    };
    let unknown = |at: &[usize]| {
        let numbers: Vec<String> = at.iter().map(usize::to_string).collect();
        Diagnostic::new(
            Code::UnknownDim,
            format!(
                "dimension {} of the feed `{name}` {} is not known",
                numbers.join(", "),
                PartialShape(Some(shape.clone()))
            ),
        )
        .help(bind_help(asked.called.as_deref().unwrap_or(&node.name), asked.spec.dtype, &shape, at))
        .at_node(&node.name, &node.op)
    };
    let (mut out, mut axes, mut missing) = (Vec::new(), vec![None; shape.len()], Vec::new());
    for (i, dim) in shape.iter().enumerate() {
        match bindings.binding_of(asked, &node.name, &tensor, i, *dim) {
            Some(Binding::Size(size)) => out.push(size),
            Some(Binding::Bound(bound)) => {
                let number = size_index(varying, &bound, field, i, node)?;
                let is_named = asked.spec.bounds.get(i).is_some_and(Option::is_some);
                if !is_named && axes[..i].iter().flatten().any(|&other| other != number) {
                    let size = &varying.sizes[number].name;
                    assumptions.push(format!("dimension {i} of `{name}` varies by itself, as the size `{size}`"));
                }
                axes[i] = Some(number);
                out.push(bound.most);
            }
            None if i == 0 => {
                assumptions.push(format!(
                    "the leading dimension of `{name}` is not known and taken as 1; `--dim 1..64` is for each size up to 64"
                ));
                out.push(1);
            }
            None => missing.push(i),
        }
    }
    if missing.is_empty() { Ok((out, axes)) } else { Err(unknown(&missing)) }
}

/// Help text: the options that would bind the dimensions `at` of a feed.
fn bind_help(node: &str, dtype: Option<DType>, shape: &[Option<u64>], at: &[usize]) -> String {
    let flags: Vec<String> = at.iter().map(|i| format!("--dim {node}[{i}]=N")).collect();
    let sizes: Vec<String> = shape.iter().map(|d| d.map_or("N".to_string(), |n| n.to_string())).collect();
    let dtype = dtype.map_or(String::new(), |t| t.to_string());
    format!("bind it with {}, or --feed {node}={dtype}[{}]", flags.join(" "), sizes.join(","))
}

/// `--dim` options, with flags for those that matched a dimension.
struct Bindings<'a> {
    bound: &'a [(String, Binding)],
    used: &'a mut [bool],
}

impl Bindings<'_> {
    /// Binding of dimension `i` of a feed; `dim` is its size if the graph or the feed's specification fixes it.
    fn binding_of(
        &mut self,
        asked: &UnresolvedFeed,
        node: &str,
        tensor: &str,
        i: usize,
        dim: Option<u64>,
    ) -> Option<Binding> {
        let own = || asked.spec.bounds.get(i).cloned().flatten().map(Binding::Bound);
        dim.map(Binding::Size).or_else(own).or_else(|| self.option_for(node, tensor, i))
    }

    /// Binding of dimension `i` of a feed by a `--dim` option; the most specific option wins.
    fn option_for(&mut self, node: &str, tensor: &str, i: usize) -> Option<Binding> {
        let exact = [format!("{node}[{i}]"), format!("{tensor}[{i}]")];
        let at_place = format!("?[{i}]");
        let forms: [&dyn Fn(&str) -> bool; 6] = [
            &|name| exact.iter().any(|e| e == name),
            &|name| name == node || name == tensor,
            &|name| name == "batch" && i == 0,
            &|name| name.is_empty(),
            &|name| name == at_place,
            &|name| name == "?",
        ];
        let at = forms.iter().find_map(|form| self.bound.iter().rposition(|(name, _)| form(name)))?;
        self.used[at] = true;
        let (name, binding) = &self.bound[at];
        Some(binding.for_axis(name, i))
    }
}
