//! `tfaot explain`: the meaning of a code, or the reason for a node's cluster assignment.
use super::{ExitStatus, args::ExplainArgs, cluster_text, clustering, out};
use crate::diag::codes::{CODES, CodeRow};
use crate::diag::{Code, Diagnostic, Result};
use crate::model::{ClusterInput, ModelFile};
use crate::prepare::Request;
use std::path::Path;

/// Prints the page of a code, the list of all codes, or the explanation for a node.
pub fn run(args: &ExplainArgs) -> Result<ExitStatus> {
    if let (Some(node), Some(graph)) = (&args.subject, &args.graph) {
        return explain_node(args, node, graph);
    }
    let Some(text) = &args.subject else {
        let lines: Vec<_> = CODES.iter().map(|r| format!("{}  {:18} {}\n", r.code.id(), r.slug, r.about)).collect();
        return out::text(&lines.concat()).map(|()| ExitStatus::Yes);
    };
    let row = Code::parse(text).ok_or_else(|| {
        Diagnostic::new(Code::BadOption, format!("`{text}` is no diagnostic code"))
            .help("`tfaot explain` without a code lists all of them; a node is explained by `tfaot explain NODE GRAPH`")
    })?;
    out::text(&page(row))?;
    Ok(ExitStatus::Yes)
}

fn explain_node(args: &ExplainArgs, name: &str, path: &Path) -> Result<ExitStatus> {
    let mut options = clustering::clustering_options(&args.pass, args.quiet)?;
    options.refused_edges = true;
    let model = ModelFile::open(path).with_format(args.format.as_deref());
    let ClusterInput { program, gone, .. } =
        clustering::load_file(&model, args.quiet, &mut Request::default(), &mut options)?;
    let mut found = crate::cluster::cluster(&program, &program.graph, &options).map_err(|e| e.in_file(path))?;
    found.nodes.extend(gone);
    let Some(node) = found.nodes.iter().find(|n| n.name == name) else {
        let near: Vec<&str> =
            found.nodes.iter().map(|n| n.name.as_str()).filter(|n| n.contains(name)).take(5).collect();
        let mut unknown = Diagnostic::new(Code::UnknownTensor, format!("the graph has no node `{name}`"));
        if !near.is_empty() {
            unknown = unknown.help(format!("nodes with that in their name: {}", near.join(", ")));
        }
        return Err(unknown.into());
    };
    out::text(&cluster_text::explain_node(&found, node))?;
    Ok(ExitStatus::Yes)
}

fn page(row: &CodeRow) -> String {
    format!("{}: {}\n\n{}\n\nWhat helps: {}\n", row.code.id(), row.slug, row.about, row.cure)
}
