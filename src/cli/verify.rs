//! `tfaot verify`: compares compiled code with the interpreter and with expected results, and prints the comparisons.
use super::args::VerifyArgs;
use super::progress::{self, Progress};
use super::{ExitStatus, graph, out, sizes};
use crate::diag::{Code, Diagnostic, Result};
use crate::run::{arguments, calls};
use crate::target::CodeRequest;
use crate::verify::comparison::RelativeError;
use crate::verify::sequence::{CallSequence, verify_calls};
use crate::verify::{Comparison, OpComparison, Verification, VerifyCase, VerifyOptions, verify};
use serde_json::{Value, json};
use std::path::Path;

/// Compares one call, or the calls of a call file.
pub fn run(args: &VerifyArgs) -> Result<ExitStatus> {
    if let Some(path) = &args.calls {
        let comparisons = sequence(args, path)?;
        print_hashes(&comparisons, args)?;
        return print_verification(&Verification { comparisons, blame: None }, args.json, args.ops);
    }
    let code = graph::code_request(&args.target)?;
    let name = graph::model_name(None, &args.graph.graph)?;
    let functions = graph::lower_only_function(&args.graph)?;
    let lowered = &functions.all[0].1;
    let keys = graph::npz_result_keys(&args.graph, lowered);
    let values = arguments::for_function(args.inputs.as_deref(), lowered, &sizes::parse(&args.sizes)?)?;
    let case = VerifyCase {
        graph: &args.graph.graph,
        format: args.graph.format.as_deref(),
        request: &graph::request(&args.graph)?,
        functions: &functions,
        keys: &keys,
        args: &values,
        expect: args.expect.as_deref(),
        weights: args.file.source(),
        all_ops: args.ops,
        conditions: conditions(args, &name, &code),
    };
    let _progress = Progress::begin("reading", args.graph.quiet);
    let report = verify(&case, &|step| progress::set_step(step))?;
    print_hashes(&report.comparisons, args)?;
    print_verification(&report, args.json, args.ops)
}

/// Prints the hash of each output of compiled code where that is asked for; JSON has it with each comparison.
fn print_hashes(all: &[Comparison], args: &VerifyArgs) -> Result<()> {
    let of_code = all.iter().filter(|c| c.with == "interpreter" && args.hash && !args.json);
    of_code.into_iter().try_for_each(|c| out::line(format_args!("sha256   {} {}", c.output, c.digest)))
}

fn conditions<'a>(args: &VerifyArgs, name: &'a str, code: &'a CodeRequest) -> VerifyOptions<'a> {
    VerifyOptions { name, code, threads: args.threads.into(), rtol: args.rtol, atol: args.atol }
}

/// Compares the calls of a call file.
fn sequence(args: &VerifyArgs, path: &Path) -> Result<Vec<Comparison>> {
    let calls = calls::read(path)?;
    let graph = graph::with_signatures(&args.graph, &calls);
    let code = graph::code_request(&args.target)?;
    let name = graph::model_name(None, &graph.graph)?;
    let (functions, _) = graph::lower_functions(&graph)?;
    let sequence = CallSequence {
        graph: &graph.graph,
        functions: &functions,
        calls: &calls,
        sizes: &sizes::parse(&args.sizes)?,
        weights: args.file.source(),
        conditions: conditions(args, &name, &code),
    };
    verify_calls(&sequence, |lowered| graph::npz_result_keys(&graph, lowered))
}

/// Prints a line for each comparison, or a JSON document. The worst mismatch becomes a diagnostic.
pub(super) fn print_verification(report: &Verification, as_json: bool, all_ops: bool) -> Result<ExitStatus> {
    let all = &report.comparisons;
    let bad = all.iter().filter(|c| c.departs()).max_by(|a, b| a.excess().total_cmp(&b.excess()));
    if as_json {
        out::json(&document(report))?;
    } else {
        print_lines(report, all_ops)?;
    }
    let Some(bad) = bad else { return Ok(ExitStatus::Yes) };
    let Some(diagnostic) = mismatch(bad, report) else { return Ok(ExitStatus::Yes) };
    out::error(diagnostic.into());
    Ok(ExitStatus::No)
}

fn document(report: &Verification) -> Value {
    let all = &report.comparisons;
    let list: Vec<Value> = all.iter().map(comparison_json).collect();
    let mut document = json!({"ok": !all.iter().any(Comparison::departs), "comparisons": list});
    if let Some(blame) = &report.blame {
        document["first"] = blame.blamed_op().map_or(Value::Null, |step| json!(step.tensor));
        document["expectation"] = blame.departing_expectation().map_or(Value::Null, |step| json!(step.tensor));
        document["ops"] = blame.steps.iter().map(OpComparison::as_json).collect();
    }
    document
}

fn print_lines(report: &Verification, all_ops: bool) -> Result<()> {
    for c in &report.comparisons {
        let verdict = if c.departs() { "differs" } else { "equal" };
        let error = c.unrounded.map_or_else(String::new, |u| {
            format!(
                "; error {:.2e} of the largest element, {:.2e} in the mean (without rounding {:.2e}, {:.2e})",
                c.error.largest, c.error.rms, u.largest, u.rms
            )
        });
        let told = format!("{verdict:8} {} with {}, worst {:.3} of the bound", c.output, c.with, c.excess());
        let rounding = c
            .tolerance
            .rounding
            .map_or_else(String::new, |by| format!("; the bound has {by:.2e} for results rounded to 16 bits"));
        out::line(format_args!("{told}{rounding}{error}"))?;
    }
    for step in report.blame.iter().flat_map(|b| &b.steps).filter(|s| all_ops || s.own.is_some()) {
        out::line(step)?;
    }
    Ok(())
}

/// The diagnostic for the comparison with the largest difference.
fn mismatch(bad: &Comparison, report: &Verification) -> Option<Diagnostic> {
    if let Some([got, want]) = &bad.types {
        let told = format!("`{}` is {got}, and {want} by the {}", bad.output, bad.with);
        return Some(Diagnostic::new(Code::Mismatch, told));
    }
    let worst = bad.worst.as_ref()?;
    let message = format!(
        "`{}` departs most: element {} is {}, and {} by the {}",
        bad.output, worst.index, worst.got.text, worst.want.text, bad.with
    );
    let mut diagnostic = Diagnostic::new(Code::Mismatch, message).note(format!("{:.3} times the bound", worst.excess));
    if let Some(blame) = &report.blame {
        diagnostic = diagnostic.note(blame.sentence());
        if let Some(step) = blame.blamed_op() {
            diagnostic = diagnostic.at_node(step.node(), &step.op);
        }
    }
    Some(diagnostic)
}

fn comparison_json(c: &Comparison) -> Value {
    let worst =
        c.worst.as_ref().map(|w| json!({"index": w.index, "got": w.got.json, "want": w.want.json, "excess": w.excess}));
    let error = |e: &RelativeError| json!({"largest": e.largest, "rms": e.rms});
    json!({
        "output": c.output,
        "hash": c.digest,
        "with": c.with,
        "ok": !c.departs(),
        "bound": {"rtol": c.tolerance.rtol, "atol": c.tolerance.atol, "rounding": c.tolerance.rounding},
        "error": error(&c.error),
        "unrounded_error": c.unrounded.as_ref().map(error),
        "worst": worst,
    })
}
