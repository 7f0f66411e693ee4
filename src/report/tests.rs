//! Tests of what needs no browser: work estimates, borders of clusters, texts.
use super::{add_constant_copies, cluster_border, flops};
use crate::cluster::{self, ClusteringOptions, FeedsAndFetches, GraphOrigin, JitLevel};
use crate::graph::Program;
use crate::infer::{self, Facts};
use crate::prepare::{self, Request};
use std::path::Path;

fn program(name: &str) -> (Program, Facts) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/graphs").join(name).join("graph.pb");
    let program = crate::import::load(&path, None).expect("a sound file");
    let open = prepare::resolve_request(&program, &Request::default()).expect("feeds and fetches");
    let facts = infer::infer(&program, &open.feeds);
    (program, facts)
}

fn work(name: &str, node: &str) -> Option<u64> {
    let (program, facts) = program(name);
    let id = program.graph.find(node).unwrap_or_else(|| panic!("{name} has no {node}"));
    flops::node_flops(&program, &facts)[id.0 as usize]
}

#[test]
fn contractions_are_counted_exactly() {
    // f32[2,8,8,8] from 3x3x3 filters; each term is a multiplication and an addition.
    assert_eq!(work("conv_net", "Conv2D"), Some(2 * (2 * 8 * 8 * 8) * (3 * 3 * 3)));
    // f32[2,8,8,16]; each element is computed with one 3x3 filter.
    assert_eq!(work("conv_net", "depthwise"), Some(2 * (2 * 8 * 8 * 16) * (3 * 3)));
    assert_eq!(work("conv_net", "Relu"), Some(2 * 8 * 8 * 8));
    assert_eq!(work("conv_net", "image"), Some(0));
}

#[test]
fn a_cluster_is_cut_at_its_border() {
    let (mut program, _) = program("conv_net");
    let mut options = ClusteringOptions {
        session_level: Some(JitLevel::On),
        origin: GraphOrigin::Saved,
        ..ClusteringOptions::default()
    };
    options.flags.cpu_global_jit = Some(true);
    cluster::preprocess(&mut program, &FeedsAndFetches::default()).expect("it is a saved graph");
    let found = cluster::cluster(&program, &program.graph, &options).expect("clusters");
    add_constant_copies(&mut program, &found);
    let open = prepare::resolve_request(&program, &Request::default()).expect("feeds and fetches");
    let facts = infer::infer(&program, &open.feeds);
    let inside = |id: crate::graph::NodeId| found.nodes[id.0 as usize].cluster.is_ok();
    let cut = cluster_border(&program, &facts, &inside).expect("all sizes are known");
    let names = |all: Vec<&str>| all.iter().map(|n| n.to_string()).collect::<Vec<_>>();
    assert_eq!(cut.feeds.iter().map(|f| f.info.name.clone()).collect::<Vec<_>>(), names(vec!["image:0"]));
    assert_eq!(cut.fetches.iter().map(|f| f.0.clone()).collect::<Vec<_>>(), names(vec!["Identity:0"]));
}
