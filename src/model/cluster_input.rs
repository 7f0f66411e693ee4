//! Preparation of a model for TensorFlow's clustering pass.
use super::ModelFile;
use crate::cluster::{self, ClusteringOptions, ExclusionReason, FeedsAndFetches, GraphOrigin, NodeVerdict};
use crate::diag::{Error, Result};
use crate::graph::Program;
use crate::infer::FeedFacts;
use crate::prepare::{self, FeedSpec, Request};
use crate::{hlo, import};

/// A program as TensorFlow's clustering pass receives it, and what preprocessing changed.
pub struct ClusterInput {
    /// The program after the passes that TensorFlow runs before clustering.
    pub program: Program,
    /// Nodes of the file that these passes removed.
    pub gone: Vec<NodeVerdict>,
    /// Assumptions, one sentence each.
    pub assumed: Vec<String>,
}

/// Reads a model and runs the passes that TensorFlow runs before clustering; a dump of TensorFlow is used as it is. A signature in
/// `request` is replaced by its feeds and fetches, and `options` get the origin of the graph.
///
/// # Errors
/// Errors of reading the file; `Code::BadOption` for an unknown signature.
pub fn load_for_clustering(
    model: &ModelFile,
    request: &mut Request,
    options: &mut ClusteringOptions,
) -> Result<ClusterInput> {
    let mut program = import::load_as_saved(&model.path, model.format.as_deref())?;
    let in_file = |e: Error| e.in_file(&model.path);
    name_ends(&program, request).map_err(in_file)?;
    if cluster::is_dump(&program.graph) {
        return Ok(ClusterInput { program, gone: Vec::new(), assumed: Vec::new() });
    }
    options.origin = GraphOrigin::Saved;
    let feeds = request.feeds.iter().map(|f| f.name.clone()).collect();
    let brought = cluster::preprocess(&mut program, &FeedsAndFetches { feeds, fetches: request.fetches.clone() })
        .map_err(in_file)?;
    let gone = brought.removed.into_iter().map(|(name, op, expanded)| NodeVerdict {
        name,
        op,
        cluster: Err(if expanded { ExclusionReason::Expanded } else { ExclusionReason::Pruned }),
    });
    Ok(ClusterInput { program, gone: gone.collect(), assumed: brought.assumptions })
}

/// Replaces the signature of a request by its feeds and fetches, or by those of all signatures if the request names none; replaces
/// names from a signature by tensor names. A request with fetches, or for a file without signatures, keeps its fetches.
///
/// # Errors
/// `Code::BadOption` for an unknown signature.
fn name_ends(program: &Program, request: &mut Request) -> Result<()> {
    let says = !request.fetches.is_empty() || !prepare::has_signature(program);
    if request.signatures.is_empty() && says {
        *request = prepare::request_with_tensor_names(program, request);
        return Ok(());
    }
    let ends = prepare::resolve_request(program, &prepare::merge_all_signatures(program, request))?;
    request.signatures.clear();
    request.fetches = ends.fetches.into_iter().map(|(name, _)| name).collect();
    let feed = |given: FeedFacts| FeedSpec {
        name: format!("{}:{}", program.graph.nodes[given.at.node].name, given.at.port),
        value: given.value.as_ref().map(hlo::text::print_elements),
        dtype: given.dtype.and_then(|of| of.dtype()),
        dims: given.shape.0.map(|dims| dims.to_vec()),
        ..FeedSpec::default()
    };
    request.feeds = ends.feeds.into_iter().map(feed).collect();
    Ok(())
}
