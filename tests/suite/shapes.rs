//! Shape functions stand beside the lowerings, and must say what these give: on each graph that is there with full feeds,
//! every tensor that is lowered has the inferred type and shape.
use std::path::{Path, PathBuf};
use tfaot::diag::Error;
use tfaot::graph::{Endpoint, NodeId, PartialShape, TfType};
use tfaot::infer::{FeedFacts, infer};
use tfaot::lower::lower;
use tfaot::ops::output_count;
use tfaot::prepare::{Binding, Request, prepare};

/// The graphs of the repository, and those below the folder that `TFAOT_GRAPHS` names.
fn graphs() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/graphs");
    let more = std::env::var_os("TFAOT_GRAPHS").map(PathBuf::from);
    let mut found = Vec::new();
    for folder in [Some(own), more].into_iter().flatten() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let names = ["graph.pb", "frozen.pb", "plain.pb", "model.json"];
            found.extend(names.iter().map(|n| entry.path().join(n)).find(|p| p.is_file()));
        }
    }
    found.sort();
    found
}

/// Compares one graph; the tensors that are equal, that inference leaves open, and a line for each that differs.
fn compare(path: &Path) -> (usize, usize, Vec<String>) {
    let program = tfaot::import::load(path, None).expect("reads");
    let request = Request { dims: vec![(String::new(), Binding::Size(2))], ..Request::default() };
    let plain = Request::default();
    let prepared = prepare(program.clone(), &request).or_else(|_| prepare(program, &plain));
    let Ok(prepared) = prepared else { return (0, 0, Vec::new()) };
    let program = &prepared.program;
    let given: Vec<FeedFacts> = prepared
        .feeds
        .iter()
        .map(|f| FeedFacts {
            at: f.at,
            dtype: Some(TfType::Data(f.info.dtype)),
            shape: PartialShape(Some(f.info.dims.iter().copied().map(Some).collect())),
            sizes: Vec::new(),
            value: None,
        })
        .collect();
    let facts = infer(program, &given);
    assert!(facts.problems.is_empty(), "{}: {}", path.display(), Error::User(facts.problems.clone()));
    let mut wanted: Vec<(String, Endpoint)> = Vec::new();
    for (i, node) in program.graph.nodes.values().enumerate() {
        for port in 0..output_count(node, &program.functions).unwrap_or(1) as u32 {
            wanted.push((format!("{}:{port}", node.name), Endpoint { node: NodeId(i as u32), port }));
        }
    }
    // What can't be lowered is left out, with all that needs it.
    let lowered = loop {
        match lower(program, &prepared.feeds, &wanted, &[]) {
            Ok(lowered) => break lowered,
            Err(all) => {
                let blamed: Vec<NodeId> = all
                    .iter()
                    .filter_map(|d| d.place.node.as_deref())
                    .filter_map(|name| program.graph.find(name))
                    .collect();
                let before = wanted.len();
                let mut gone: Vec<bool> = program.graph.nodes.ids().map(|id| blamed.contains(&id)).collect();
                for _ in 0..program.graph.nodes.len() {
                    let more: Vec<NodeId> = program
                        .graph
                        .nodes
                        .iter()
                        .filter(|(id, n)| !gone[id.0 as usize] && n.inputs.iter().any(|e| gone[e.node.0 as usize]))
                        .map(|(id, _)| id)
                        .collect();
                    more.iter().for_each(|id| gone[id.0 as usize] = true);
                    if more.is_empty() {
                        break;
                    }
                }
                wanted.retain(|(_, at)| !gone[at.node.0 as usize]);
                if wanted.len() == before || wanted.is_empty() {
                    return (0, 0, Vec::new());
                }
            }
        }
    };
    let (mut equal, mut open, mut wrong) = (0, 0, Vec::new());
    for ((name, at), info) in wanted.iter().zip(&lowered.results) {
        let op = &program.graph.nodes[at.node].op;
        let Some(fact) = facts.at(*at) else {
            wrong.push(format!("{}: {name} ({op}) has no fact", path.display()));
            continue;
        };
        let covers = fact.dims.to_partial_shape().0.is_none_or(|dims| {
            dims.len() == info.dims.len() && dims.iter().zip(&info.dims).all(|(d, n)| d.is_none_or(|d| d == *n))
        });
        if !covers || fact.dtype.is_some_and(|t| t != TfType::Data(info.dtype)) {
            let inferred = fact.dtype.map_or("?".to_string(), |t| t.to_string());
            wrong.push(format!(
                "{}: {name} ({op}) is {} and inferred as {inferred}{}",
                path.display(),
                info.type_text(),
                fact.dims
            ));
        } else if fact.dims.known_sizes().is_none() || fact.dtype.is_none() {
            open += 1;
            if std::env::var_os("TFAOT_GRAPHS").is_some() {
                println!("{}: {name} ({op}) is {} and open: {}", path.display(), info.type_text(), fact.dims);
            }
        } else {
            equal += 1;
        }
    }
    (equal, open, wrong)
}

/// Graphs of which lowering knows sizes that inference leaves open, and how many: the length of `x[i:i+3]` follows from what both
/// ends are made of, which inference does not follow, as it does no number that follows from two sizes; what is as long as the values
/// say is lowered at the most that it can be.
const OPEN: &[(&str, usize)] = &[
    ("counted_slices", 31),
    ("open_path", 5),
    ("open_sizes", 11),
    ("ragged_ids", 18),
    ("ragged_rows", 8),
    ("rows_in_loops", 2),
    ("selected_labels", 6),
    ("sizes_within", 3),
    ("sparse", 50),
];

#[test]
fn inference_says_what_lowering_gives() {
    let (mut equal, mut open, mut wrong) = (0, 0, Vec::new());
    for path in graphs() {
        let (e, mut o, w) = compare(&path);
        if let Some((name, known)) = OPEN.iter().find(|(name, _)| path.components().any(|c| c.as_os_str() == *name)) {
            assert_eq!(o, *known, "shapes of {name} that are open");
            o = 0;
        }
        equal += e;
        open += o;
        wrong.extend(w);
    }
    println!("{equal} tensors are equal, {open} open");
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), equal + wrong.len(), wrong.join("\n"));
    assert!(equal > 300, "{equal}");
    assert!(open == 0 || std::env::var_os("TFAOT_GRAPHS").is_some(), "{open} shapes are open with full feeds");
}
