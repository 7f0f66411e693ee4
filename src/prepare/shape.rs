//! Type and sizes of each feed, from the user and from the graph.
use super::binding::{VaryingSizes, is_default};
use super::defaults::{UnresolvedFeed, spelled};
use super::field_names;
use super::{Binding, DimBound};
use crate::diag::{Code, Diagnostic, Error};
use crate::graph::{Attr, Node, PartialShape, Program, TfType};
use crate::hlo::ArrayShape;
use crate::hlo::text::parse_elements;
use crate::infer::FeedFacts;
use crate::lower::Feed;
use crate::tensor::{DType, Size, Tensor, TensorInfo};

/// No argument may be larger.
const MOST_BYTES: u64 = 1 << 34;

/// Producers up to this wrote a Placeholder of unknown shape as a scalar.
const SCALAR_IS_UNKNOWN: std::ops::RangeInclusive<i32> = 1..=21;

/// The arguments with their largest sizes, and what of them varies.
pub struct Shaped {
    /// The arguments, in order.
    pub feeds: Vec<Feed>,
    /// The sizes that vary.
    pub sizes: Vec<Size>,
    /// For each argument the size of each axis; `None`: it is fixed.
    pub axes: Vec<Vec<Option<usize>>>,
    /// The feeds that are no arguments, as their values are told.
    pub values: Vec<FeedFacts>,
}

/// The arguments, in order. Errors of all feeds are collected: `UnknownDim`, `UnsupportedType`, `TooLarge`, `BadOption`.
pub fn infos(
    program: &Program,
    asked: &[UnresolvedFeed],
    bound: &[(String, Binding)],
    used: &mut [bool],
    told: &mut Vec<String>,
) -> Result<Shaped, Error> {
    let (told_values, asked): (Vec<&UnresolvedFeed>, Vec<&UnresolvedFeed>) =
        asked.iter().partition(|a| a.spec.value.is_some());
    let names: Vec<String> = asked.iter().map(|a| a.shown(program)).collect();
    let mut bindings = Bindings { bound, used };
    let (mut feeds, mut axes, mut values, mut bad) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for asked in told_values {
        match value(program, asked) {
            Ok(tensor) => values.extend(tensor.map(|tensor| holding(asked, tensor))),
            Err(d) => bad.push(d),
        }
    }
    let mut varying = VaryingSizes::default();
    for ((asked, name), field) in asked.into_iter().zip(&names).zip(field_names(&names)) {
        let dtype = dtype(program, asked, name);
        let dims = dims(program, asked, name, &field, &mut bindings, &mut varying, told);
        match (dtype, dims) {
            (Ok(dtype), Ok((dims, own))) => {
                let name = spelled(program, asked.at);
                let info = TensorInfo { name, called: asked.called.clone(), field, dtype, dims };
                feeds.push(Feed { at: asked.at, info });
                axes.push(own);
            }
            (Err(d), Ok(_)) | (Ok(_), Err(d)) => bad.push(d),
            (Err(d), Err(e)) => bad.extend([d, e]),
        }
    }
    bad.extend(feeds.iter().filter(|f| f.info.bytes() > MOST_BYTES).map(|f| {
        Diagnostic::new(
            Code::TooLarge,
            format!("the feed `{}` is {}, which is more than 2^34 bytes", f.info.shown(), f.info.spelled()),
        )
    }));
    if bad.is_empty() { Ok(Shaped { feeds, sizes: varying.sizes, axes, values }) } else { Err(Error::User(bad)) }
}

/// Errors: `BadOption` for each binding that is not `used`.
pub fn all_bound(bound: &[(String, Binding)], used: &[bool]) -> Result<(), Error> {
    let unused =
        bound.iter().zip(used).filter(|((name, _), used)| !**used && !is_default(name)).map(|(binding, _)| binding);
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

fn dtype(program: &Program, asked: &UnresolvedFeed, name: &str) -> Result<DType, Diagnostic> {
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

/// The shape that the graph tells for a feed.
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

/// The shape of a feed as far as the user and the graph tell, bindings not yet applied.
fn told_shape(program: &Program, asked: &UnresolvedFeed) -> PartialShape {
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

/// The constant that the user gives for a feed. Errors: `BadOption` where that is no value of its type and shape.
fn value(program: &Program, asked: &UnresolvedFeed) -> Result<Option<Tensor>, Diagnostic> {
    let Some(text) = &asked.spec.value else { return Ok(None) };
    let (name, node) = (asked.shown(program), &program.graph.nodes[asked.at.node]);
    let dtype = dtype(program, asked, &name)?;
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
    let parsed = parse_elements(text, shape);
    parsed.map(Some).map_err(|e| bad(e.into_diagnostics().first().map_or(String::new(), |d| d.message.clone())))
}

fn holding(asked: &UnresolvedFeed, tensor: Tensor) -> FeedFacts {
    let shape = PartialShape(Some(tensor.dims.iter().copied().map(Some).collect()));
    let (dtype, sizes) = (Some(TfType::Data(tensor.dtype)), Vec::new());
    FeedFacts { at: asked.at, dtype, shape, sizes, value: Some(tensor) }
}

/// The feeds with what is told of them, and the sizes that have bounds; nothing is assumed, and what is not known stays open.
///
/// Errors: `BadOption` for a size with two bounds.
pub fn open(
    program: &Program,
    asked: &[UnresolvedFeed],
    bound: &[(String, Binding)],
) -> Result<(Vec<FeedFacts>, Vec<Size>), Diagnostic> {
    let mut used = vec![false; bound.len()];
    let mut bindings = Bindings { bound, used: &mut used };
    let mut varying = VaryingSizes::default();
    let mut given = Vec::with_capacity(asked.len());
    let names: Vec<String> = asked.iter().map(|a| a.shown(program)).collect();
    for (asked, field) in asked.iter().zip(field_names(&names)) {
        if let Some(tensor) = value(program, asked)? {
            given.push(holding(asked, tensor));
            continue;
        }
        let name = spelled(program, asked.at);
        let node = &program.graph.nodes[asked.at.node];
        let told = told_shape(program, asked).0;
        let (mut dims, mut sizes) = (Vec::new(), Vec::new());
        for (i, dim) in told.iter().flatten().enumerate() {
            let (size, number) = match bindings.said(asked, &node.name, &name, i, *dim) {
                Some(Binding::Size(size)) => (Some(size), None),
                Some(Binding::Bound(bound)) => (None, Some(numbered(&mut varying, &bound, &field, i, node)?)),
                None => (None, None),
            };
            dims.push(size);
            sizes.push(number);
        }
        let dtype = dtype(program, asked, &name).ok().map(TfType::Data).or_else(|| node.tf_type("dtype"));
        let shape = PartialShape(told.map(|_| dims));
        given.push(FeedFacts { at: asked.at, dtype, shape, sizes, value: None });
    }
    Ok((given, varying.sizes))
}

/// The number of the size that dimension `i` of a feed has. Errors: `BadOption` for a second bound of one name.
fn numbered(
    varying: &mut VaryingSizes,
    bound: &DimBound,
    field: &str,
    i: usize,
    node: &Node,
) -> Result<usize, Diagnostic> {
    let conflict = |what| Diagnostic::new(Code::BadOption, format!("the size {what}")).at_node(&node.name, &node.op);
    varying.number(bound, &format!("{field}_{i}")).map_err(conflict)
}

fn dims(
    program: &Program,
    asked: &UnresolvedFeed,
    name: &str,
    field: &str,
    bindings: &mut Bindings,
    varying: &mut VaryingSizes,
    told: &mut Vec<String>,
) -> Result<(Vec<u64>, Vec<Option<usize>>), Diagnostic> {
    let node = &program.graph.nodes[asked.at.node];
    let tensor = spelled(program, asked.at);
    let Some(shape) = told_shape(program, asked).0 else {
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
        match bindings.said(asked, &node.name, &tensor, i, *dim) {
            Some(Binding::Size(size)) => out.push(size),
            Some(Binding::Bound(bound)) => {
                let number = numbered(varying, &bound, field, i, node)?;
                let is_named = asked.spec.bounds.get(i).is_some_and(Option::is_some);
                if !is_named && axes[..i].iter().flatten().any(|&other| other != number) {
                    let size = &varying.sizes[number].name;
                    told.push(format!("dimension {i} of `{name}` varies by itself, as the size `{size}`"));
                }
                axes[i] = Some(number);
                out.push(bound.most);
            }
            None if i == 0 => {
                told.push(format!("the leading dimension of `{name}` is not known and taken as 1; `--dim 1..64` is for each size up to 64"));
                out.push(1);
            }
            None => missing.push(i),
        }
    }
    if missing.is_empty() { Ok((out, axes)) } else { Err(unknown(&missing)) }
}

/// The flags that would make the dimensions `at` of a feed known.
fn bind_help(node: &str, dtype: Option<DType>, shape: &[Option<u64>], at: &[usize]) -> String {
    let flags: Vec<String> = at.iter().map(|i| format!("--dim {node}[{i}]=N")).collect();
    let sizes: Vec<String> = shape.iter().map(|d| d.map_or("N".to_string(), |n| n.to_string())).collect();
    let dtype = dtype.map_or(String::new(), |t| t.to_string());
    format!("bind it with {}, or --feed {node}={dtype}[{}]", flags.join(" "), sizes.join(","))
}

/// The values of `--dim`, and which were used.
struct Bindings<'a> {
    bound: &'a [(String, Binding)],
    used: &'a mut [bool],
}

impl Bindings<'_> {
    /// The binding of dimension `i` of a feed; `dim` is its size where the graph or the feed's own shape fixes it.
    fn said(
        &mut self,
        asked: &UnresolvedFeed,
        node: &str,
        tensor: &str,
        i: usize,
        dim: Option<u64>,
    ) -> Option<Binding> {
        let own = || asked.spec.bounds.get(i).cloned().flatten().map(Binding::Bound);
        dim.map(Binding::Size).or_else(own).or_else(|| self.find(node, tensor, i))
    }

    /// The value for dimension `i` of a feed; the most exact binding wins.
    fn find(&mut self, node: &str, tensor: &str, i: usize) -> Option<Binding> {
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
        Some(binding.at_place(name, i))
    }
}
