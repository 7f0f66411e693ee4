//! `tfaot verify`: compiled code against the interpreter, and both against expected results; where they differ, which op
//! departs first.
mod departs;

use super::args::VerifyArgs;
use super::npz::Arrays;
use super::{Verdict, graph, inputs, npz, out, run};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::tensor::{DType, Tensor, TensorInfo};
use serde_json::{Value, json};

/// One output by two engines.
struct Comparison {
    output: String,
    with: &'static str,
    worst: Option<Worst>,
}

impl Comparison {
    /// Whether some element departs by more than the bound.
    fn departs(&self) -> bool {
        excess(self) > 1.0
    }
}

/// The element that departs most.
struct Worst {
    /// Its number, row-major.
    index: usize,
    got: f64,
    want: f64,
    /// How often the allowed difference it departs; above 1 is a mismatch.
    excess: f64,
}

/// Compares, prints a line a comparison, and blames the worst output.
pub fn run(args: &VerifyArgs) -> Result<Verdict> {
    let target = graph::target(&args.target)?;
    let name = graph::model_name(None, &args.graph.graph)?;
    let front = graph::front(&args.graph)?;
    let keys = graph::result_keys(&args.graph, &front.lowered);
    let results = front.lowered.results.clone();
    let values = inputs::load(args.inputs.as_deref(), &front.lowered.args)?;
    let reference = args.expect.as_deref().map(npz::read).transpose()?.unwrap_or_default();
    let wanted = args.expect.as_deref().map(|path| expected(&reference, path, &keys, &results)).transpose()?;
    let plain = graph::interpret(&front.lowered, values.clone()).map_err(|e| graph::in_file(e, &args.graph))?;
    let native = run::native(front.lowered, &name, &target, &values, args.threads.into());
    let native = native.map_err(|e| graph::in_file(e, &args.graph))?;
    let mut all = compare(&keys, "interpreter", &native, &plain, args);
    if let Some(wanted) = wanted {
        all.extend(compare(&keys, "expected", &native, &wanted, args));
    }
    let blamed = if args.ops || all.iter().any(Comparison::departs) {
        Some(departs::find(args, &target, &name, &values, &reference)?)
    } else {
        None
    };
    report(&all, blamed.as_ref(), args)
}

/// The expected results of a file, which may hold intermediate ones too. Errors: `Code::BadInputs` for each that is missing
/// or has another type.
fn expected(reference: &Arrays, path: &std::path::Path, keys: &[String], infos: &[TensorInfo]) -> Result<Vec<Tensor>> {
    let in_file = |e| out::in_file(e, &path.display().to_string());
    let one = |(key, info): (&String, &TensorInfo)| {
        let found = inputs::find(reference, key);
        let found = found.ok_or_else(|| Error::user(Code::BadInputs, format!("there is no array `{key}`")));
        inputs::fit(found.map_err(in_file)?, &TensorInfo { name: key.clone(), ..info.clone() }).map_err(in_file)
    };
    keys.iter().zip(infos).map(one).collect()
}

fn compare(keys: &[String], with: &'static str, got: &[Tensor], want: &[Tensor], args: &VerifyArgs) -> Vec<Comparison> {
    let pairs = keys.iter().zip(got.iter().zip(want));
    pairs.map(|(key, (g, w))| Comparison { output: key.clone(), with, worst: worst(g, w, args) }).collect()
}

/// The element that departs most from the bound `rtol * |want| + atol * max |want|`; integers must be equal.
fn worst(got: &Tensor, want: &Tensor, args: &VerifyArgs) -> Option<Worst> {
    let (got, want) = (parts(got), parts(want));
    let inexact = want.dtype.is_float();
    let number = |t: &Tensor, i: usize| t.get_f64(i).unwrap_or(f64::NAN);
    let largest = (0..want.len()).map(|i| number(&want, i).abs()).filter(|v| v.is_finite()).fold(0.0, f64::max);
    let mut found: Option<Worst> = None;
    for index in 0..want.len() {
        let (g, w) = (number(&got, index), number(&want, index));
        let same = g == w || (g.is_nan() && w.is_nan());
        let bound = if inexact { args.rtol * w.abs() + args.atol * largest } else { 0.0 };
        let excess = match (same, (g - w).abs() / bound) {
            (true, _) => 0.0,
            (false, ratio) if ratio.is_nan() => f64::INFINITY,
            (false, ratio) => ratio,
        };
        if found.as_ref().is_none_or(|f| excess > f.excess) {
            found = Some(Worst { index, got: g, want: w, excess });
        }
    }
    found
}

/// A complex array as twice as many floats.
fn parts(t: &Tensor) -> Tensor {
    let real: DType = t.dtype.real_part();
    let count = (t.bytes.len() / real.bytes()) as u64;
    Tensor::new(real, vec![count], t.bytes.clone())
}

fn report(all: &[Comparison], blamed: Option<&departs::Blame>, args: &VerifyArgs) -> Result<Verdict> {
    let bad = all.iter().filter(|c| c.departs()).max_by(|a, b| excess(a).total_cmp(&excess(b)));
    if args.json {
        let list: Vec<Value> = all.iter().map(|c| as_json(c, c.departs())).collect();
        let mut document = json!({"ok": bad.is_none(), "comparisons": list});
        if let Some(blamed) = blamed {
            document["first"] = blamed.first().map_or(Value::Null, |step| json!(step.tensor));
            document["ops"] = blamed.steps.iter().map(departs::Step::as_json).collect();
        }
        out::json(&document)?;
    } else {
        for c in all {
            let verdict = if c.departs() { "differs" } else { "equal" };
            out::line(format_args!("{verdict:8} {} with {}, worst {:.3} of the bound", c.output, c.with, excess(c)))?;
        }
        for step in blamed.iter().flat_map(|b| &b.steps).filter(|s| args.ops || s.own.is_some()) {
            out::line(step)?;
        }
    }
    let Some((c, w)) = bad.and_then(|c| Some((c, c.worst.as_ref()?))) else { return Ok(Verdict::Yes) };
    let message = format!(
        "output `{}` departs most: element {} is {}, and {} by the {}",
        c.output, w.index, w.got, w.want, c.with
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
    c.worst.as_ref().map_or(0.0, |w| w.excess)
}

fn as_json(c: &Comparison, departs: bool) -> Value {
    let worst = c.worst.as_ref().map(|w| json!({"index": w.index, "got": w.got, "want": w.want, "excess": w.excess}));
    json!({"output": c.output, "with": c.with, "ok": !departs, "worst": worst})
}
