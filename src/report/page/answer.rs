//! The summary of clusters on the page: how much is in clusters, what excludes the rest, what each cluster is. It is plain HTML, so that
//! it is shown before scripts run, can be printed, and can be read without scripts.
use super::escaped;
use super::overview;
use super::words::{
    count_or_dash, format_bytes, format_count, format_flops, format_percent, format_thousands, format_time,
    short_node_name, text_to_html,
};
use crate::report::model::{Blocker, ClusterReport, CodeReport, CompileRefusal, MergeObstacle, OpenSize, Report};
use std::fmt::Write;

/// Number of rows that a table shows before the rest is collapsed.
const FIRST_ROWS: usize = 12;
/// Maximum number of rows of a table.
const MOST_ROWS: usize = 400;
/// Number of example nodes in a row.
const EXAMPLES: usize = 3;

/// The summary section as HTML.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    overview::render(&mut out, report);
    verdict(&mut out, report);
    blockers(&mut out, report);
    stops(&mut out, report);
    clusters(&mut out, report);
    open_sizes(&mut out, report);
    assumed(&mut out, report);
    out
}

fn verdict(out: &mut String, report: &Report) {
    let s = &report.summary;
    let clusters = format_count(report.clusters.len() as u64, "cluster");
    let told = match (s.clustered, s.flops) {
        (0, _) => "No node is in a cluster.".to_string(),
        (_, 0) => format!("{} of the nodes are in {clusters}.", format_percent(s.node_coverage)),
        _ => format!(
            "{} of the nodes and {} of the {}FLOPs are in {clusters}.",
            format_percent(s.node_coverage),
            format_percent(s.flops_coverage),
            if s.unknown_flops > 0 { "known " } else { "" }
        ),
    };
    // the page begins with the whole model, so clusters are one section among others
    let head = if report.models.is_empty() {
        format!("<h1>{}</h1>\n<p class=\"verdict\">{told}</p>", escaped(&report.source))
    } else {
        format!(
            "<section><h2>In TensorFlow's clusters</h2>\n<p class=\"about\">What auto-clustering would hand to XLA, where TensorFlow runs the graph. {told}</p></section>"
        )
    };
    let _ = write!(out, "{head}\n<div class=\"bars\">\n");
    let nodes: Vec<u64> = report.clusters.iter().map(|c| c.nodes).collect();
    let flops: Vec<u64> = report.clusters.iter().map(|c| c.flops).collect();
    bar(
        out,
        "Nodes",
        &nodes,
        s.nodes as u64,
        &format!("{} of {}", format_thousands(s.clustered), format_thousands(s.nodes as u64)),
    );
    bar(out, "FLOPs", &flops, s.flops, &format!("{} of {}", format_flops(s.clustered_flops), format_flops(s.flops)));
    out.push_str("</div>\n");
    let mut notes = Vec::new();
    if s.unknown_flops > 0 {
        let without = format_count(s.unknown_flops as u64, "node");
        notes.push(format!("{without} without a count of FLOPs: sizes are open, or nothing is known of the op"));
    }
    if s.gone > 0 {
        let gone = format_count(s.gone as u64, "node");
        notes.push(format!("{gone} of the file inlined or cut off before clustering"));
    }
    if !notes.is_empty() {
        let _ = writeln!(out, "<p class=\"note\">{}.</p>", notes.join("; "));
    }
}

/// A bar with a segment for each cluster.
fn bar(out: &mut String, label: &str, parts: &[u64], whole: u64, told: &str) {
    let _ = write!(
        out,
        "<div class=\"bar\"><span class=\"bar-label\">{label}</span><svg viewBox=\"0 0 1000 16\" preserveAspectRatio=\"none\" \
         role=\"img\" aria-label=\"{label}: {told} in clusters\"><rect class=\"rest\" width=\"1000\" height=\"16\"/>"
    );
    let mut at = 0.0;
    // Segments too narrow to be seen are added to the last one.
    for (i, &part) in parts.iter().enumerate().take(MOST_ROWS) {
        let width = if whole == 0 { 0.0 } else { 1000.0 * part as f64 / whole as f64 };
        if width >= 0.5 {
            let _ = write!(
                out,
                "<rect class=\"c{}\" x=\"{at:.1}\" width=\"{:.1}\" height=\"16\"/>",
                i % 8,
                (width - 1.0).max(0.5)
            );
        }
        at += width;
    }
    let _ = writeln!(out, "</svg><span class=\"bar-told\">{told}</span></div>");
}

/// Renders a table whose further rows are collapsed.
fn table(out: &mut String, title: &str, about: &str, head: &[&str], rows: &[String]) {
    if rows.is_empty() {
        return;
    }
    let _ = write!(out, "<section><h2>{title}</h2>\n<p class=\"about\">{about}</p>\n");
    let head: String = head
        .iter()
        .map(|h| {
            let (class, text) = h.strip_prefix('#').map_or(("", *h), |t| (" class=\"number\"", t));
            format!("<th scope=\"col\"{class}>{text}</th>")
        })
        .collect();
    let shown = rows.len().min(FIRST_ROWS);
    let _ = writeln!(out, "<table><thead><tr>{head}</tr></thead><tbody>\n{}</tbody></table>", rows[..shown].concat());
    let more = &rows[shown..rows.len().min(MOST_ROWS)];
    if !more.is_empty() {
        let left = rows.len() - shown - more.len();
        let rest =
            if left > 0 { format!("<p class=\"note\">and {left} more, which the JSON has</p>") } else { String::new() };
        let _ = writeln!(
            out,
            "<details><summary>{} more</summary><table><thead><tr>{head}</tr></thead><tbody>\n{}</tbody></table>{rest}</details>",
            rows.len() - shown,
            more.concat()
        );
    }
    out.push_str("</section>\n");
}

fn blockers(out: &mut String, report: &Report) {
    let head = ["What", "#Nodes", "#FLOPs", "#Cut edges", "For example", "If XLA compiled it"];
    let row = |b: &Blocker| {
        let gain = match b.gain {
            Some(gain) => {
                let signed = |n: i64, told: String| format!("{}{told}", if n < 0 { "−" } else { "+" });
                let more = [
                    (gain.nodes, format_count(gain.nodes.unsigned_abs(), "node")),
                    (gain.flops, format_flops(gain.flops.unsigned_abs())),
                    (gain.clusters, format_count(gain.clusters.unsigned_abs(), "cluster")),
                ];
                let told: Vec<String> =
                    more.into_iter().filter(|m| m.0 != 0).map(|(n, told)| signed(n, told)).collect();
                format!("<td>{}</td>", if told.is_empty() { "nothing more".to_string() } else { told.join("<br>") })
            }
            None if b.blocks => "<td>–</td>".to_string(),
            None => String::new(),
        };
        let (what, more) = if b.op.is_empty() { (b.slug, "") } else { (b.op.as_str(), b.slug) };
        let reason = format!(
            "<td class=\"reason\"><span class=\"slug\">{}</span> <span class=\"code\">{} {}</span><p>{}</p><p class=\"cure\">{}</p></td>",
            escaped(what),
            b.code,
            escaped(more),
            text_to_html(&b.reason),
            text_to_html(b.cure)
        );
        format!(
            "<tr>{reason}<td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td>{}</td>{gain}</tr>\n",
            format_thousands(b.nodes.len() as u64),
            count_or_dash(b.flops, format_flops),
            count_or_dash(b.cuts as u64, format_thousands),
            examples(report, &b.nodes)
        )
    };
    let of = |blocks: bool| -> Vec<String> { report.blockers.iter().filter(|b| b.blocks == blocks).map(row).collect() };
    table(
        out,
        "What keeps nodes outside",
        "The most valuable first: by the FLOPs outside or to be gained, then by the edges that it cuts between clusters.",
        &head,
        &of(true),
    );
    table(
        out,
        "Outside by their nature",
        "Borders of the graph, and what TensorFlow leaves outside because it would cost more inside.",
        &head[..head.len() - 1],
        &of(false),
    );
}

fn stops(out: &mut String, report: &Report) {
    let row = |s: &MergeObstacle| {
        let links: Vec<String> = s
            .edges
            .iter()
            .take(EXAMPLES)
            .map(|&at| {
                let name =
                    |n: Option<u32>| n.and_then(|n| report.columns.nodes.name.get(n as usize)).map_or("?", |n| last(n));
                let edge = &report.columns.edges[at as usize];
                format!("<a href=\"#edge={at}\">{} → {}</a>", escaped(name(edge.from)), escaped(name(edge.to)))
            })
            .collect();
        format!(
            "<tr><td class=\"reason\"><span class=\"slug\">{}</span> <span class=\"code\">{}</span><p>{}</p><p class=\"cure\">{}</p></td><td class=\"number\">{}</td><td>{}</td></tr>\n",
            escaped(s.slug),
            s.code,
            text_to_html(s.about),
            text_to_html(s.cure),
            format_thousands(s.edges.len() as u64),
            links.join("<br>")
        )
    };
    let rows: Vec<String> = report.stops.iter().map(row).collect();
    table(
        out,
        "What stopped clusters from growing",
        "Edges between two clusters that TensorFlow could not make one.",
        &["Reason", "#Edges", "For example"],
        &rows,
    );
}

fn clusters(out: &mut String, report: &Report) {
    let row = |(i, c): (usize, &ClusterReport)| {
        let code = c.code.and_then(|at| report.code.get(at as usize));
        let told = match code {
            Some(code) if c.left_out > 0 => {
                format!("{}; {} left out that no result needs", compiled(code), format_count(c.left_out as u64, "node"))
            }
            Some(code) => compiled(code),
            None if c.refused.is_empty() => "not asked for".to_string(),
            None => refused(report, &c.refused),
        };
        let share = if report.summary.flops == 0 { 0.0 } else { c.flops as f64 / report.summary.flops as f64 };
        format!(
            "<tr><td class=\"named\"><i class=\"key k{}\"></i><a href=\"#cluster={i}\">{}</a></td><td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td>{told}</td></tr>\n",
            i % 8,
            escaped(&c.name),
            format_thousands(c.nodes),
            count_or_dash(c.flops, format_flops),
            if c.flops == 0 { "–".to_string() } else { format_percent(share) }
        )
    };
    let rows: Vec<String> = report.clusters.iter().enumerate().map(row).collect();
    table(
        out,
        "Clusters",
        "Each is what TensorFlow would compile as one; compiled alone by tfaot where all its sizes are known.",
        &["Cluster", "#Nodes", "#FLOPs", "#Share", "Compiled"],
        &rows,
    );
}

fn open_sizes(out: &mut String, report: &Report) {
    let row = |o: &OpenSize| {
        let nodes: Vec<u32> = o.node.into_iter().collect();
        format!(
            "<tr><td class=\"number\">{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            format_thousands(o.tensors),
            examples(report, &nodes),
            text_to_html(&o.why),
            text_to_html(&o.remedy)
        )
    };
    let rows: Vec<String> = report.open_sizes.iter().map(row).collect();
    table(
        out,
        "Sizes that are not known",
        "Clusters behind them are not compiled here, and their FLOPs are not counted. What depends on values can be given for \
         this report alone: <code>--feed NODE=f32[1,2,3]</code>.",
        &["#Tensors", "From", "Why", "What helps"],
        &rows,
    );
}

/// The first reason, abbreviated, and the number of further ones; the graph view shows them in full.
fn refused(report: &Report, all: &[CompileRefusal]) -> String {
    let Some(first) = all.first() else { return String::new() };
    let nodes: Vec<u32> = first.node.into_iter().collect();
    let place = if nodes.is_empty() { String::new() } else { format!(" at {}", examples(report, &nodes)) };
    let more = if all.len() > 1 { format!(", and {} more", all.len() - 1) } else { String::new() };
    format!(
        "<span class=\"refused\">not compiled alone</span>: {} <span class=\"code\">{}</span>{place}{more}",
        escaped(first.slug),
        first.code
    )
}

fn compiled(code: &CodeReport) -> String {
    let times: Vec<f64> = code.kernels.iter().filter_map(|k| k.ms).collect();
    let total = if times.is_empty() { String::new() } else { format!(", {}", format_time(times.iter().sum())) };
    format!(
        "{}, {} workspace, {} constants{total}",
        format_count(code.kernels.len() as u64, "kernel"),
        format_bytes(code.workspace_bytes),
        format_bytes(code.weights_bytes)
    )
}

fn assumed(out: &mut String, report: &Report) {
    if report.assumed.is_empty() {
        return;
    }
    let items: String = report.assumed.iter().map(|a| format!("<li>{}</li>\n", text_to_html(a))).collect();
    let _ = write!(out, "<section><h2>Assumed</h2>\n<ul class=\"assumed\">\n{items}</ul></section>\n");
}

fn examples(report: &Report, nodes: &[u32]) -> String {
    let names = nodes.iter().take(EXAMPLES).filter_map(|&n| report.columns.nodes.name.get(n as usize));
    let links: Vec<String> = names
        .map(|n| {
            format!("<a href=\"#node={}\" title=\"{}\">{}</a>", quoted(n), escaped(n), escaped(short_node_name(n)))
        })
        .collect();
    links.join("<br>")
}

/// The last component of a name.
fn last(name: &str) -> &str {
    name.rsplit('/').find(|part| !part.is_empty()).unwrap_or(name)
}

/// A name, percent-encoded for the fragment of a link.
fn quoted(name: &str) -> String {
    let mut out = String::new();
    for b in name.bytes() {
        if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~' | b'/' | b':') {
            out.push(b as char);
        } else {
            let _ = write!(out, "%{b:02X}");
        }
    }
    out
}
