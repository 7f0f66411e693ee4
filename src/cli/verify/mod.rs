//! `tfaot verify`: compiled code against the interpreter, and both against expected results; where they differ, which op
//! departs first.
mod departs;
mod in_order;
mod instructions;
mod narrow;

use super::args::VerifyArgs;
use super::progress::{self, Progress};
use super::{Verdict, graph, out, sizes};
use crate::codegen::Launches;
use crate::compile;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::lower::Lowered;
use crate::run::Instance;
use crate::run::Interpreter;
use crate::run::npz::Arrays;
use crate::run::{arguments, npz};
use crate::target::{MathType, Precision, Target, WeightType};
use crate::tensor::{DTypeClass, Tensor, TensorInfo};
use serde_json::{Value, json};

/// How much an element may depart.
#[derive(Clone, Copy)]
struct Bound {
    /// Relative to the element.
    rtol: f64,
    /// Relative to the largest element of the output.
    atol: f64,
    /// Whatever the elements are.
    floor: f64,
    /// Whatever the elements are too, where results are rounded to f16 or bf16 before the output.
    rounding: Option<f64>,
}

/// The bound of code that rounds nothing on request.
const EXACT: Bound = Bound { rtol: 1e-4, atol: 1e-5, floor: 0.0, rounding: None };

impl Bound {
    /// The bound of the flags, else that of the precision.
    fn of(args: &VerifyArgs, precision: Precision) -> Bound {
        let usual = match (precision.weights, precision.math) {
            (WeightType::F32, MathType::F32) => EXACT,
            (WeightType::F32 | WeightType::Bf16, MathType::F32 | MathType::Bf16) => {
                Bound { rtol: 0.0, atol: 0.05, floor: 0.0, rounding: None }
            }
            (WeightType::Int8, MathType::F32 | MathType::Bf16) => {
                Bound { rtol: 0.0, atol: 0.1, floor: 0.0, rounding: None }
            }
        };
        Bound { rtol: args.rtol.unwrap_or(usual.rtol), atol: args.atol.unwrap_or(usual.atol), ..usual }
    }
}

/// One output by two engines.
struct Comparison {
    output: String,
    with: &'static str,
    bound: Bound,
    /// None where there are no elements, or as many as can't be compared.
    worst: Option<Worst>,
    /// The types of both where their sizes are not the same.
    types: Option<[String; 2]>,
    error: Departure,
    /// The error of code that rounds nothing, where this code does.
    unrounded: Option<Departure>,
}

/// Differences relative to the largest element of an output.
#[derive(Clone, Copy)]
struct Departure {
    largest: f64,
    rms: f64,
}

impl Comparison {
    /// A tensor by the compiled code, `got`, and by another engine or the expectation.
    fn of(name: &str, with: &'static str, got: &Tensor, want: &Tensor, bound: Bound) -> Self {
        let output = name.to_string();
        if got.dims != want.dims {
            let types = [got, want].map(|t| format!("{}{:?}", t.dtype, t.dims));
            let error = Departure { largest: f64::INFINITY, rms: f64::INFINITY };
            return Comparison { output, with, bound, worst: None, types: Some(types), error, unrounded: None };
        }
        let (worst, error) = (worst(got, want, bound), error(got, want));
        Comparison { output, with, bound, worst, types: None, error, unrounded: None }
    }
    /// Whether some element departs by more than the bound.
    fn departs(&self) -> bool {
        excess(self) > 1.0
    }
}

/// The element that departs most.
struct Worst {
    /// Its number, row-major.
    index: usize,
    got: Element,
    want: Element,
    /// How often the allowed difference it departs; above 1 is a mismatch.
    excess: f64,
}

/// An element to be told.
struct Element {
    /// With all its digits.
    text: String,
    /// The same as a number, two for a complex one; what JSON can't write is null.
    json: Value,
}

impl Element {
    fn of(t: &Tensor, i: usize) -> Element {
        let part = |i: usize| json!(t.parts().get_f64(i));
        let json = match (t.dtype.class(), t.get_i64(i)) {
            (DTypeClass::Unsigned, Some(v)) => json!(v as u64),
            (_, Some(v)) => json!(v),
            (DTypeClass::Complex, None) => json!([part(2 * i), part(2 * i + 1)]),
            (_, None) => json!(t.get_f64(i)),
        };
        Element { text: t.element_text(i), json }
    }
}

/// Compares, prints a line a comparison, and blames the worst output.
///
/// Code that rounds weights is compared twice: with the interpreter on the rounded weights by the bound of f32, which finds
/// wrong code, and with the interpreter on the graph's own, by a bound that is stated for the precision.
pub fn run(args: &VerifyArgs) -> Result<Verdict> {
    if let Some(path) = &args.calls {
        return report(&in_order::compared(args, path)?, None, args);
    }
    let target = graph::target(&args.target)?;
    let precision = target.precision;
    let name = graph::model_name(None, &args.graph.graph)?;
    let functions = graph::function(&args.graph)?;
    let lowered = functions.all[0].1.clone();
    let is_plain = lowered.state.is_empty() && lowered.sized.is_none();
    let keys = graph::result_keys(&args.graph, &lowered);
    let named = |r: &TensorInfo| [Some(r.name.clone()), r.called.clone()].into_iter().flatten();
    let names: Vec<String> = lowered.results.iter().flat_map(named).collect();
    let values = arguments::for_function(args.inputs.as_deref(), &lowered, &sizes::parse(&args.sizes)?)?;
    let results = lowered.results.clone();
    let mut reference = args.expect.as_deref().map(npz::read).transpose()?.unwrap_or_default();
    let wanted = args.expect.as_deref().map(|path| expected(&reference, path, &keys, &lowered)).transpose()?;
    let in_file = |e| graph::in_file(e, &args.graph);
    let _progress = Progress::begin("interpreting", args.graph.quiet);
    let plain = Interpreter::new(&functions).and_then(|mut i| i.call(0, values.clone())).map_err(in_file)?;
    let build = |target: &Target| {
        let targets = std::slice::from_ref(target);
        let functions = args.file.of(functions.clone());
        let built = compile::build_all(functions, &name, &name, targets, Launches::Direct, &mut [])?;
        let results = Instance::load(&built, target, args.threads.into(), args.file.path())?.call(0, &values)?;
        Ok((built, results))
    };
    progress::step("compiling");
    let (mut built, native) = build(&target).map_err(in_file)?;
    let bound = Bound::of(args, precision);
    let is_stated = args.rtol.is_some() || args.atol.is_some() || precision.is_reduced();
    let bounds = match is_stated {
        true => vec![bound; keys.len()],
        false => narrow::bounds(&functions, &values, &plain, bound).map_err(in_file)?,
    };
    let mut all = compare(&keys, "interpreter", &native, &plain, &bounds);
    if let Some(wanted) = &wanted {
        all.extend(compare(&keys, "expected", &native, wanted, &bounds));
    }
    if precision.is_reduced() {
        let exact = Target { precision: Precision::default(), ..target.clone() };
        let (_, unrounded) = build(&exact).map_err(in_file)?;
        let references = [&plain].into_iter().chain(&wanted).flatten();
        for (i, (comparison, want)) in all.iter_mut().zip(references).enumerate() {
            comparison.unrounded = Some(error(&unrounded[i % keys.len().max(1)], want));
        }
        let mut rounded = functions.clone();
        rounded.all.iter_mut().zip(built.modules.drain(..)).for_each(|((_, lowered), module)| lowered.module = module);
        let same =
            Interpreter::new(&rounded).and_then(|i| i.with_padding().call(0, values.clone())).map_err(in_file)?;
        // where factors are rounded as they come, a difference of one f32 bit can become one of a bf16 bit
        let bound = if precision.math == MathType::F32 { Bound::of(args, Precision::default()) } else { bound };
        all.extend(compare(&keys, "interpreter, rounded", &native, &same, &vec![bound; keys.len()]));
    }
    let mut blamed = None;
    let others = others(&reference, &keys, &names);
    if let (false, Some(other)) = (is_plain, others.first()) {
        let told = format!(
            "`{other}` is no result: inside of functions with variables or sizes that vary nothing is looked at"
        );
        let error = Error::user(Code::BadInputs, told);
        return Err(args.expect.iter().fold(error, |e, path| e.in_file(path)));
    }
    // An op is looked for by TensorFlow's names, whatever the signature calls its result.
    let by_name = results.iter().map(|r| r.name.clone()).zip(wanted.iter().flatten().cloned());
    reference.extend(by_name);
    progress::step("looking for the op that departs");
    if is_plain && (args.ops || !others.is_empty() || all.iter().any(Comparison::departs)) {
        let in_file = |e: Error| match &args.expect {
            Some(path) => e.in_file(path),
            None => e,
        };
        let found = departs::find(args, &target, &name, &values, (&reference, &others)).map_err(in_file)?;
        let mut found: departs::Blame = found;
        all.append(&mut found.others);
        blamed = Some(found).filter(|_| args.ops || all.iter().any(Comparison::departs));
    }
    report(&all, blamed.as_ref(), args)
}

/// The expected results of a file, which may hold intermediate ones too. Errors: `Code::BadInputs` for each that is missing
/// or has another type.
///
/// Sizes that vary may be any up to their bounds; whether they are those of the call is compared.
fn expected(reference: &Arrays, path: &std::path::Path, keys: &[String], lowered: &Lowered) -> Result<Vec<Tensor>> {
    let infos = &lowered.results;
    let in_file = |e: Error| e.in_file(path);
    let one = |(i, (key, info)): (usize, (&String, &TensorInfo))| {
        let found = reference.get(key).or_else(|| arguments::find(reference, info, infos));
        let found = found.ok_or_else(|| Error::user(Code::BadInputs, format!("there is no array `{key}`")));
        let found = found.map_err(in_file)?;
        let mut wanted = TensorInfo { called: Some(key.clone()), ..info.clone() };
        let axes = lowered.sized.as_ref().and_then(|s| s.sizes.results.get(i));
        for ((most, &n), axis) in wanted.dims.iter_mut().zip(&found.dims).zip(axes.into_iter().flatten()) {
            if axis.is_some() && n <= *most {
                *most = n;
            }
        }
        arguments::fit(found, &wanted).map_err(in_file)
    };
    keys.iter().zip(infos).enumerate().map(one).collect()
}

/// The keys of the expectation that are no outputs, which have these keys and names.
fn others(reference: &Arrays, keys: &[String], names: &[String]) -> Vec<String> {
    let bare = |name: &str| name.strip_suffix(":0").unwrap_or(name).to_string();
    let outputs: Vec<String> = keys.iter().chain(names).map(|name| bare(name)).collect();
    reference.keys().filter(|key| !outputs.contains(&bare(key))).cloned().collect()
}

/// Each output by the compiled code and by another engine, with a bound for each.
fn compare(keys: &[String], with: &'static str, got: &[Tensor], want: &[Tensor], bounds: &[Bound]) -> Vec<Comparison> {
    let pairs = keys.iter().zip(got.iter().zip(want)).zip(bounds);
    pairs.map(|((key, (g, w)), &bound)| Comparison::of(key, with, g, w, bound)).collect()
}

/// How far `got` is from `want`; elements that are no finite numbers are left to [`worst`].
fn error(got: &Tensor, want: &Tensor) -> Departure {
    let (got, want) = (got.parts(), want.parts());
    let number = |t: &Tensor, i: usize| t.get_f64(i).unwrap_or(f64::NAN);
    let finite = |i: &usize| number(&got, *i).is_finite() && number(&want, *i).is_finite();
    let (mut largest, mut most, mut squares, mut count) = (0.0f64, 0.0f64, 0.0, 0.0);
    for i in (0..want.len()).filter(finite) {
        let difference = (number(&got, i) - number(&want, i)).abs();
        largest = largest.max(number(&want, i).abs());
        most = most.max(difference);
        (squares, count) = (squares + difference * difference, count + 1.0);
    }
    if most == 0.0 {
        return Departure { largest: 0.0, rms: 0.0 };
    }
    Departure { largest: most / largest, rms: (squares / count).sqrt() / largest }
}

/// The element that departs most from the bound `rtol * |want| + atol * max |want| + floor + rounding`; integers must be equal.
fn worst(got: &Tensor, want: &Tensor, allowed: Bound) -> Option<Worst> {
    let (whole_got, whole_want) = (got, want);
    let (got, want) = (got.parts(), want.parts());
    let inexact = want.dtype.is_float();
    let number = |t: &Tensor, i: usize| t.get_f64(i).unwrap_or(f64::NAN);
    let largest = (0..want.len()).map(|i| number(&want, i).abs()).filter(|v| v.is_finite()).fold(0.0, f64::max);
    let mut found: Option<(usize, f64)> = None;
    for index in 0..want.len() {
        let (g, w) = (number(&got, index), number(&want, index));
        // Integers of 64 bits are more than doubles can tell apart.
        let same =
            if inexact { g == w || (g.is_nan() && w.is_nan()) } else { got.get_i64(index) == want.get_i64(index) };
        let bound = if inexact {
            allowed.rtol * w.abs() + allowed.atol * largest + allowed.floor + allowed.rounding.unwrap_or(0.0)
        } else {
            0.0
        };
        let excess = match (same, (g - w).abs() / bound) {
            (true, _) => 0.0,
            (false, ratio) if ratio.is_nan() => f64::INFINITY,
            (false, ratio) => ratio,
        };
        if found.is_none_or(|(_, most)| excess > most) {
            found = Some((index, excess));
        }
    }
    found.map(|(part, excess)| {
        let index = part * whole_want.len() / want.len();
        Worst { index, got: Element::of(whole_got, index), want: Element::of(whole_want, index), excess }
    })
}

fn report(all: &[Comparison], blamed: Option<&departs::Blame>, args: &VerifyArgs) -> Result<Verdict> {
    told(all, blamed, args.json, args.ops)
}

/// A call of a module in whose code the instruction is looked for that departs first.
pub(super) struct Bisected<'a> {
    /// The module.
    pub lowered: &'a Lowered,
    /// The machine.
    pub target: &'a Target,
    /// The arguments.
    pub values: &'a [Tensor],
    /// Threads of the code.
    pub threads: usize,
}

/// Compares results of compiled code, called `keys`, with those of the interpreter, and prints a line for each; where they differ, also
/// the instructions of `bisected` that depart.
pub(super) fn two_engines(
    keys: &[String],
    native: &[Tensor],
    plain: &[Tensor],
    bisected: Option<Bisected>,
) -> Result<Verdict> {
    let all = compare(keys, "interpreter", native, plain, &vec![EXACT; keys.len()]);
    let find = |b: Bisected| instructions::find(b.lowered, (EXACT, b.threads), b.target, "hlo", b.values);
    let blamed = bisected.filter(|_| all.iter().any(Comparison::departs)).map(find).transpose()?;
    told(&all, blamed.as_ref(), false, false)
}

fn told(all: &[Comparison], blamed: Option<&departs::Blame>, as_document: bool, ops: bool) -> Result<Verdict> {
    let bad = all.iter().filter(|c| c.departs()).max_by(|a, b| excess(a).total_cmp(&excess(b)));
    if as_document {
        let list: Vec<Value> = all.iter().map(|c| as_json(c, c.departs())).collect();
        let mut document = json!({"ok": bad.is_none(), "comparisons": list});
        if let Some(blamed) = blamed {
            document["first"] = blamed.first().map_or(Value::Null, |step| json!(step.tensor));
            document["expectation"] = blamed.expectation().map_or(Value::Null, |step| json!(step.tensor));
            document["ops"] = blamed.steps.iter().map(departs::Step::as_json).collect();
        }
        out::json(&document)?;
    } else {
        for c in all {
            let verdict = if c.departs() { "differs" } else { "equal" };
            let error = c.unrounded.map_or_else(String::new, |u| {
                format!(
                    "; error {:.2e} of the largest element, {:.2e} in the mean (without rounding {:.2e}, {:.2e})",
                    c.error.largest, c.error.rms, u.largest, u.rms
                )
            });
            let told = format!("{verdict:8} {} with {}, worst {:.3} of the bound", c.output, c.with, excess(c));
            let rounding = c
                .bound
                .rounding
                .map_or_else(String::new, |by| format!("; the bound has {by:.2e} for results rounded to 16 bits"));
            out::line(format_args!("{told}{rounding}{error}"))?;
        }
        for step in blamed.iter().flat_map(|b| &b.steps).filter(|s| ops || s.own.is_some()) {
            out::line(step)?;
        }
    }
    if let Some((c, [got, want])) = bad.and_then(|c| Some((c, c.types.as_ref()?))) {
        let told = format!("`{}` is {got}, and {want} by the {}", c.output, c.with);
        out::error(Diagnostic::new(Code::Mismatch, told).into());
        return Ok(Verdict::No);
    }
    let Some((c, w)) = bad.and_then(|c| Some((c, c.worst.as_ref()?))) else { return Ok(Verdict::Yes) };
    let message = format!(
        "`{}` departs most: element {} is {}, and {} by the {}",
        c.output, w.index, w.got.text, w.want.text, c.with
    );
    let mut diagnostic = Diagnostic::new(Code::Mismatch, message).note(format!("{:.3} times the bound", w.excess));
    if let Some(blamed) = blamed {
        diagnostic = diagnostic.note(blamed.in_words());
        if let Some(step) = blamed.first() {
            diagnostic = diagnostic.at_node(step.node(), &step.op);
        }
    }
    out::error(diagnostic.into());
    Ok(Verdict::No)
}

fn excess(c: &Comparison) -> f64 {
    let of_elements = c.worst.as_ref().map_or(0.0, |w| w.excess);
    if c.types.is_some() { f64::INFINITY } else { of_elements }
}

fn as_json(c: &Comparison, departs: bool) -> Value {
    let worst =
        c.worst.as_ref().map(|w| json!({"index": w.index, "got": w.got.json, "want": w.want.json, "excess": w.excess}));
    let error = |e: &Departure| json!({"largest": e.largest, "rms": e.rms});
    json!({
        "output": c.output,
        "with": c.with,
        "ok": !departs,
        "bound": {"rtol": c.bound.rtol, "atol": c.bound.atol, "rounding": c.bound.rounding},
        "error": error(&c.error),
        "unrounded_error": c.unrounded.as_ref().map(error),
        "worst": worst,
    })
}
