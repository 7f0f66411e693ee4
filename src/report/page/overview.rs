//! The first screen: the model as its user sees it. Says whether it compiles, its inputs and outputs, the cost of a call, next steps, and
//! changes since an earlier report.
use super::escaped;
use super::words::{
    format_bytes, format_count, format_flops, format_percent, format_thousands, format_time, text_to_html,
};
use crate::report::baseline::{Baseline, FigureComparison, FigureUnit};
use crate::report::model::{CodeReport, KernelReport, Report};
use crate::report::overview::{BlockingCause, FunctionSummary, InterfaceTensor};
use crate::target::QuantizedProducts;
use std::fmt::Write;

/// Number of kernels that the first screen shows.
const HOTTEST: usize = 6;
/// Number of inputs or outputs that are shown before the rest is collapsed.
const FIRST_VALUES: usize = 8;

/// Renders the first screen; nothing for a report without models.
pub(super) fn render(out: &mut String, report: &Report) {
    if report.models.is_empty() {
        return;
    }
    let _ = write!(out, "<h1>{}</h1>\n<p class=\"verdict\">{}</p>\n", escaped(&report.source), verdict(report));
    if let [model] = &report.models[..] {
        out.push_str("<section class=\"whole\">\n");
        function(out, report, model, false);
        steps(out, report);
        hottest(out, report, 0);
        out.push_str("</section>\n");
    } else {
        steps(out, report);
        for (at, model) in report.models.iter().enumerate() {
            out.push_str("<section class=\"whole\">\n");
            function(out, report, model, true);
            hottest(out, report, at);
            out.push_str("</section>\n");
        }
    }
    baseline(out, report.baseline.as_ref());
}

/// Renders the inputs, the outputs and the cost of a function, or the causes that block it.
fn function(out: &mut String, report: &Report, model: &FunctionSummary, named: bool) {
    if named || !model.signature.is_empty() {
        let _ = writeln!(out, "<h2>Signature <code>{}</code></h2>", escaped(&model.signature));
    }
    if let Some(code) = code(report, model) {
        facts(out, model, code);
        quantized_products(out, &code.quantized);
    }
    causes(out, &model.blocked);
    out.push_str("<div class=\"ends\">\n");
    values(out, "Inputs", &model.inputs);
    values(out, "Outputs", &model.outputs);
    out.push_str("</div>\n");
}

fn code<'a>(report: &'a Report, model: &FunctionSummary) -> Option<&'a CodeReport> {
    report.code.get(model.code? as usize)
}

fn verdict(report: &Report) -> String {
    let whole = report.models.iter().filter(|m| m.blocked.is_empty()).count();
    let all = report.models.len();
    let open = |m: &FunctionSummary| m.blocked.iter().all(|c| c.code == crate::diag::Code::UnknownDim.id());
    if whole == all {
        let target = report.code.first().map_or("", |c| c.target.rsplit(' ').next().unwrap_or(""));
        let what = if all == 1 { "Compiles".to_string() } else { format!("All {all} signatures compile") };
        return format!("{what} whole, for {}.", escaped(target));
    }
    if all > 1 && whole > 0 {
        return format!("{whole} of {} compile whole.", format_count(all as u64, "signature"));
    }
    if report.models.iter().all(open) {
        return "Compiles once its open sizes are bound.".to_string();
    }
    let causes = report.models.iter().map(|m| m.blocked.len() as u64).sum();
    format!("Does not compile whole: {} below.", format_count(causes, "cause"))
}

/// Renders the cost of a call in figures.
fn facts(out: &mut String, model: &FunctionSummary, code: &CodeReport) {
    let measured: Option<f64> = code.kernels.iter().map(|k| k.ms).sum();
    let roofline: Option<f64> = code.kernels.iter().map(|k| k.roofline_ms).sum();
    let (took, about) = match (measured, roofline) {
        (Some(ms), Some(least)) => {
            (format_time(ms), format!("in kernels, one thread; the machine could do it in {}", format_time(least)))
        }
        (Some(ms), None) => (format_time(ms), "in kernels, one thread".to_string()),
        (None, _) => ("not measured".to_string(), "<code>--profile</code> measures".to_string()),
    };
    let parameters = scaled_count(model.parameters);
    let mut all = vec![
        ("A call", took, about),
        ("Work", format_flops(code.flops), "floating-point operations of a call".to_string()),
        ("Parameters", parameters, format!("{} of constants in the object", format_bytes(code.weights_bytes))),
        ("Workspace", format_bytes(code.workspace_bytes), "memory that the caller lends to a call".to_string()),
        (
            "Kernels",
            format_thousands(code.kernels.len() as u64),
            match code.launches.len() {
                1 => "started once in a call".to_string(),
                n => format!("started {} times in a call", format_thousands(n as u64)),
            },
        ),
    ];
    if model.state_bytes > 0 {
        all.push(("State", format_bytes(model.state_bytes), "variables that live from call to call".to_string()));
    }
    out.push_str("<dl class=\"facts\">\n");
    for (what, figure, about) in all {
        let _ = writeln!(out, "<div><dt>{what}</dt><dd>{figure}<small>{about}</small></dd></div>");
    }
    out.push_str("</dl>\n");
}

/// Renders how many products of quantised activations are computed on integers, and, collapsed, which; nothing if there are none.
fn quantized_products(out: &mut String, products: &QuantizedProducts) {
    if products.is_empty() {
        return;
    }
    let integers = products.integers.iter().map(|name| format!("<li>integers: <code>{}</code></li>\n", escaped(name)));
    let floats = products.kept.iter().map(|kept| {
        format!("<li>floats: <code>{}</code>, as {}</li>\n", escaped(&kept.name), text_to_html(kept.reason))
    });
    let _ = writeln!(
        out,
        "<details class=\"quantized\"><summary>{}</summary><ul>\n{}</ul></details>",
        text_to_html(&products.to_string()),
        floats.chain(integers).collect::<String>()
    );
}

/// A count with a unit, such as `1.25 million`.
fn scaled_count(n: u64) -> String {
    match n {
        0..10_000 => format_thousands(n),
        10_000..1_000_000 => format!("{:.0} thousand", n as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} million", n as f64 / 1e6),
        _ => format!("{:.2} billion", n as f64 / 1e9),
    }
}

fn values(out: &mut String, title: &str, all: &[InterfaceTensor]) {
    let row =
        |v: &InterfaceTensor| format!("<li><b>{}</b> <code>{}</code></li>\n", escaped(&v.name), escaped(&v.shape));
    let shown = all.len().min(FIRST_VALUES);
    let list = |part: &[InterfaceTensor]| format!("<ul>\n{}</ul>", part.iter().map(row).collect::<String>());
    let _ = write!(out, "<div><h3>{title}</h3>{}", list(&all[..shown]));
    if shown < all.len() {
        let _ = write!(out, "<details><summary>{} more</summary>{}</details>", all.len() - shown, list(&all[shown..]));
    }
    out.push_str("</div>\n");
}

fn causes(out: &mut String, all: &[BlockingCause]) {
    if all.is_empty() {
        return;
    }
    out.push_str("<ol class=\"causes\">\n");
    for cause in all {
        let nodes = if cause.nodes > 1 {
            format!(" <small>{}</small>", format_count(cause.nodes as u64, "node"))
        } else {
            String::new()
        };
        let help =
            cause.help.as_deref().map_or(String::new(), |h| format!("<p class=\"cure\">{}</p>", text_to_html(h)));
        let first = if cause.first.is_empty() {
            String::new()
        } else {
            format!("<p class=\"cure\">{}</p>", text_to_html(&cause.first.join(", ")))
        };
        let _ = writeln!(
            out,
            "<li><span class=\"code\">{}</span> {}{nodes}{first}{help}</li>",
            cause.code,
            text_to_html(&cause.text)
        );
    }
    out.push_str("</ol>\n");
}

/// Renders the kernels that take most of a call, or do most of its work if nothing was measured. `model` is the function's index.
fn hottest(out: &mut String, report: &Report, model: usize) {
    let Some(code) = report.models.get(model).and_then(|m| code(report, m)) else { return };
    let scope = common_scope(&code.kernels);
    let timed = code.kernels.iter().all(|k| k.ms.is_some());
    let worth = |k: &KernelReport| if timed { k.ms.unwrap_or(0.0) } else { k.flops as f64 };
    let total: f64 = code.kernels.iter().map(worth).sum();
    let mut order: Vec<(usize, &KernelReport)> = code.kernels.iter().enumerate().collect();
    order.sort_by(|a, b| worth(b.1).total_cmp(&worth(a.1)));
    order.retain(|(_, k)| worth(k) > 0.0);
    if order.is_empty() {
        return;
    }
    let (title, head) = if timed { ("Where the time goes", "time") } else { ("Where the work is", "FLOPs") };
    let _ = write!(
        out,
        "<div class=\"hot\"><h3>{title}</h3>\n<table><thead><tr><th scope=\"col\">Kernel, by its heaviest op</th><th scope=\"col\" class=\"number\">{head}</th><th scope=\"col\" class=\"number\">share</th>{}</tr></thead><tbody>\n",
        if timed { "<th scope=\"col\" class=\"number\">of roofline</th>" } else { "" }
    );
    for (at, kernel) in order.iter().take(HOTTEST) {
        let figure = if timed { format_time(worth(kernel)) } else { format_flops(kernel.flops) };
        let part = worth(kernel) / total;
        let roof = match kernel.roofline_ms {
            Some(least) if timed => {
                format!("<td class=\"number\">{}</td>", format_percent((least / worth(kernel)).min(1.0)))
            }
            None if timed => "<td class=\"number\">–</td>".to_string(),
            Some(_) | None => String::new(),
        };
        let _ = writeln!(
            out,
            "<tr><td class=\"kernel\"><a href=\"#code=m{model}&amp;kernel={at}\" title=\"{}\">{}</a><svg class=\"share\" viewBox=\"0 0 1000 4\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"c0\" width=\"{:.0}\" height=\"4\"/></svg></td><td class=\"number\">{figure}</td><td class=\"number\">{}</td>{roof}</tr>",
            escaped(&kernel.label),
            escaped(&short(&kernel.label, scope)),
            1000.0 * part,
            format_percent(part)
        );
    }
    let left = order.len().saturating_sub(HOTTEST);
    let all = format!("<a href=\"#code=m{model}&amp;panes=kernels,asm,profile\">all kernels with their code</a>");
    let rest = if left > 0 { format!("{left} more; {all}") } else { all };
    let _ = writeln!(out, "</tbody></table><p class=\"note\">{rest}</p></div>");
}

/// The longest common prefix of scopes of all node names, which carries no information.
fn common_scope(kernels: &[KernelReport]) -> &str {
    let mut nodes = kernels.iter().filter_map(|k| Some(k.label.rsplit_once(' ')?.1.rsplit_once('/')?.0));
    let Some(mut scope) = nodes.next() else { return "" };
    for other in nodes {
        let holds =
            |scope: &str| other.strip_prefix(scope).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        while !scope.is_empty() && !holds(scope) {
            scope = scope.rsplit_once('/').map_or("", |(outer, _)| outer);
        }
    }
    scope
}

/// A kernel's label with the node's name relative to `scope`.
fn short<'a>(label: &'a str, scope: &str) -> std::borrow::Cow<'a, str> {
    let inner =
        label.rsplit_once(' ').and_then(|(what, node)| Some((what, node.strip_prefix(scope)?.strip_prefix('/')?)));
    inner.filter(|_| !scope.is_empty()).map_or(label.into(), |(what, node)| format!("{what} {node}").into())
}

fn steps(out: &mut String, report: &Report) {
    if report.next.is_empty() {
        return;
    }
    out.push_str("<h3>What to do next</h3>\n<dl class=\"next\">\n");
    for step in &report.next {
        let _ = writeln!(out, "<dt>{}</dt><dd><code>{}</code></dd>", escaped(&step.what), escaped(&step.command));
    }
    out.push_str("</dl>\n");
}

fn baseline(out: &mut String, baseline: Option<&Baseline>) {
    let Some(baseline) = baseline else { return };
    let _ = write!(
        out,
        "<section><h2>Beside the earlier report</h2>\n<p class=\"about\">{}</p>\n<table class=\"beside\"><thead><tr><th scope=\"col\">What</th><th scope=\"col\" class=\"number\">was</th><th scope=\"col\" class=\"number\">is</th><th scope=\"col\" class=\"number\">change</th></tr></thead><tbody>\n",
        escaped(&baseline.source)
    );
    for row in &baseline.rows {
        let (class, change) = change(row);
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number {class}\">{change}</td></tr>",
            row.what,
            figure(row.unit, row.was),
            figure(row.unit, row.is)
        );
    }
    out.push_str("</tbody></table>\n");
    for (title, class, list) in
        [("New in the way", "worse", &baseline.new), ("Out of the way", "better", &baseline.gone)]
    {
        if !list.is_empty() {
            let items: String = list.iter().map(|l| format!("<li>{}</li>\n", text_to_html(l))).collect();
            let _ = writeln!(out, "<h3 class=\"{class}\">{title}</h3><ul>\n{items}</ul>");
        }
    }
    out.push_str("</section>\n");
}

fn figure(unit: FigureUnit, value: Option<f64>) -> String {
    let Some(value) = value else { return "–".to_string() };
    match unit {
        FigureUnit::Count => format_thousands(value as u64),
        FigureUnit::Bytes => format_bytes(value as u64),
        FigureUnit::Ms => format_time(value),
        FigureUnit::Flops => format_flops(value as u64),
    }
}

/// The CSS class for better or worse, and the change in words.
fn change(row: &FigureComparison) -> (&'static str, String) {
    let (Some(was), Some(is)) = (row.was, row.is) else { return ("", "–".to_string()) };
    if was == is {
        return ("", "same".to_string());
    }
    let class = match row.less {
        None => "",
        Some(less) if (is < was) == less => "better",
        Some(_) => "worse",
    };
    let sign = if is < was { "−" } else { "+" };
    let by = figure(row.unit, Some((is - was).abs()));
    let part = if was > 0.0 { format!(" ({sign}{:.1} %)", 100.0 * (is / was - 1.0).abs()) } else { String::new() };
    (class, format!("{sign}{by}{part}"))
}
