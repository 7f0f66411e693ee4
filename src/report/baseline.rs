//! Comparison of a report with an earlier one of the same model: what improved and what got worse.
use super::model::Report;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// Differences between a report and an earlier one.
#[derive(Clone, Debug, Serialize)]
pub struct Baseline {
    /// The earlier report's source file, and the version of tfaot that made the report.
    pub source: String,
    /// Figures in the order of presentation, including unchanged ones.
    pub rows: Vec<FigureComparison>,
    /// Codes and ops that block now and did not before, one sentence each.
    pub new: Vec<String>,
    /// Codes and ops that no longer block, one sentence each.
    pub gone: Vec<String>,
}

/// A figure in both reports; `None` where it was not measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureComparison {
    /// The figure's name.
    pub what: &'static str,
    /// The figure's unit.
    pub unit: FigureUnit,
    /// Value in the earlier report.
    pub was: Option<f64>,
    /// Value in the present report.
    pub is: Option<f64>,
    /// Whether a smaller value is better; `None` if neither direction is.
    pub less: Option<bool>,
}

/// The unit of a figure, which determines its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FigureUnit {
    /// A plain count.
    Count,
    /// Bytes.
    Bytes,
    /// Milliseconds.
    Ms,
    /// Floating-point operations.
    Flops,
}

/// Compares a report with `old`, an earlier document of `report --json`; `None` if `old` is not such a document.
pub fn compare(old: &Value, report: &Report) -> Option<Baseline> {
    let now = serde_json::to_value(report).ok()?;
    old.get("version")?.as_u64()?;
    old.pointer("/summary/nodes")?;
    let row = |what, unit, less, figure: &dyn Fn(&Value) -> Option<f64>| FigureComparison {
        what,
        unit,
        was: figure(old),
        is: figure(&now),
        less,
    };
    let at = |path: &'static str| move |d: &Value| d.pointer(path).and_then(Value::as_f64);
    let rows = vec![
        row("functions compiled whole", FigureUnit::Count, Some(false), &|d| Some(whole_code(d)?.len() as f64)),
        row("time in kernels of a call", FigureUnit::Ms, Some(true), &|d| of_code(d, &milliseconds)),
        row("floating-point operations of a call", FigureUnit::Flops, None, &|d| of_code(d, &|c| c["flops"].as_f64())),
        row("kernels", FigureUnit::Count, None, &|d| of_code(d, &|c| Some(c["kernels"].as_array()?.len() as f64))),
        row("constants", FigureUnit::Bytes, Some(true), &|d| of_code(d, &|c| c["weights_bytes"].as_f64())),
        row("workspace", FigureUnit::Bytes, Some(true), &|d| of_code(d, &|c| c["workspace_bytes"].as_f64())),
        row("nodes", FigureUnit::Count, None, &at("/summary/nodes")),
        row("nodes in TensorFlow's clusters", FigureUnit::Count, Some(false), &at("/summary/clustered")),
        row("TensorFlow's clusters", FigureUnit::Count, Some(true), &|d| Some(d["clusters"].as_array()?.len() as f64)),
    ];
    let (then, today) = (blockers(old), blockers(&now));
    let source = |key: &str| old.get(key).and_then(Value::as_str).unwrap_or("?");
    Some(Baseline {
        source: format!("{} by {}", source("source"), source("tool")),
        rows: rows.into_iter().filter(|r| r.was.is_some() || r.is.is_some()).collect(),
        new: today.difference(&then).cloned().collect(),
        gone: then.difference(&today).cloned().collect(),
    })
}

/// The code of the functions that were compiled as a whole; `None` if a document lists no models.
fn whole_code(document: &Value) -> Option<Vec<&Value>> {
    let models = document.get("models")?.as_array()?;
    let code = models.iter().filter_map(|m| document.get("code")?.get(m.get("code")?.as_u64()? as usize));
    Some(code.collect())
}

/// Sum of a figure over the functions that were compiled as a whole.
fn of_code(document: &Value, figure: &dyn Fn(&Value) -> Option<f64>) -> Option<f64> {
    let code = whole_code(document).filter(|code| !code.is_empty())?;
    code.into_iter().map(figure).sum()
}

/// Time of all kernels; `None` if one was not measured.
fn milliseconds(code: &Value) -> Option<f64> {
    code["kernels"].as_array()?.iter().map(|k| k["ms"].as_f64()).sum()
}

/// Causes that block the model as a whole or its clusters, one sentence each.
fn blockers(document: &Value) -> BTreeSet<String> {
    let list = |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let word = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or("").to_string();
    let of_clusters = list(document, "blockers").into_iter().filter(|b| b["blocks"] == true).map(|b| {
        let op = word(&b, "op");
        format!("outside of clusters: {}{}", word(&b, "slug"), if op.is_empty() { op } else { format!(" of `{op}`") })
    });
    let causes = list(document, "models").into_iter().flat_map(|m| list(&m, "blocked"));
    let of_whole = causes.map(|c| format!("{}: {}", word(&c, "code"), word(&c, "text")));
    of_clusters.chain(of_whole).collect()
}
