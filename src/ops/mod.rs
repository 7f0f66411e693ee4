//! TensorFlow's ops: a row of a table and a lowering function for each op, in families named after TensorFlow's
//! `core/ops/*_ops.cc`.
mod checks;
pub use checks::is_assertion;
mod compact;
pub mod ctx;
mod dynamic_sizes;
pub mod fact;
pub mod host;
pub mod join;
pub mod element;
mod counted_loop;
pub mod op_lowering;
mod shape;
mod state;
pub mod mutable_list;
mod store;
mod training;
pub mod work;
pub mod shape_ctx;
pub mod symbols;
pub mod value;
pub mod spec;
mod outputs;
pub mod range;
mod array;
mod audio;
mod collective;
mod image;
mod linalg;
mod data_flow;
mod unsupported_ops;
pub mod list;
mod lookup;
mod math;
mod nn;
mod quant;
mod ragged;
mod rnn;
mod random;
mod spectral;
mod string;
mod sparse;
mod control_flow;
mod optional;
pub mod xla;

pub use ctx::LowerCtx;
pub use linalg::lapack;
pub use list::resizes_list;
pub use lookup::{Table, TableContents, changes_table, table_contents};
pub use op_lowering::{CallKind, LoweringFn, OpLowering, ShapeInference};
pub use outputs::output_count;
pub use shape_ctx::ShapeCtx;
pub use state::missing_value_error;
pub use store::VariableStore;
pub use string::text::{StringConstant, Text};
pub use unsupported_ops::{UNSUPPORTED_OPS, UnsupportedOps, unsupported_reason};
pub use value::Value;
pub use work::Work;

/// Tables of op definitions, by family.
pub const FAMILIES: &[(&str, &[&[OpLowering]])] = &[
    ("math", math::ROWS),
    ("array", array::ROWS),
    ("nn", nn::ROWS),
    ("image", image::ROWS),
    ("audio", audio::ROWS),
    ("linalg", linalg::ROWS),
    ("spectral", spectral::ROWS),
    ("string", string::ROWS),
    ("sparse", sparse::ROWS),
    ("ragged", ragged::ROWS),
    ("rnn", rnn::ROWS),
    ("random", random::ROWS),
    ("state", state::ROWS),
    ("training", training::ROWS),
    ("quant", quant::ROWS),
    ("list", list::ROWS),
    ("data_flow", data_flow::ROWS),
    ("lookup", lookup::ROWS),
    ("control_flow", control_flow::ROWS),
    ("optional", optional::ROWS),
    ("collective", collective::ROWS),
    ("xla", xla::ROWS),
];

/// Definition of a TensorFlow op; `None` if it has no lowering.
pub fn find_op(op: &str) -> Option<&'static OpLowering> {
    static ROWS: std::sync::OnceLock<foldhash::HashMap<&'static str, &'static OpLowering>> = std::sync::OnceLock::new();
    ROWS.get_or_init(|| all_ops().map(|(_, row)| (row.name, row)).collect()).get(op).copied()
}

/// Whether an op only marks where a graph is fed, holds or saves variables, or orders other nodes.
pub fn is_boundary(op: &str) -> bool {
    match find_op(op) {
        Some(row) => row.border,
        None => host::find_host_op(op).is_some_and(|row| row.role.is_boundary()),
    }
}

/// Whether output `i` of an op is its input `i`, unchanged, for every `i`.
pub fn forwards_inputs(op: &str) -> bool {
    find_op(op).is_some_and(|row| row.forwards)
}

/// Definitions of all ops that have a lowering, each with its family, in table order.
pub fn all_ops() -> impl Iterator<Item = (&'static str, &'static OpLowering)> {
    FAMILIES.iter().flat_map(|(family, tables)| tables.iter().flat_map(|t| t.iter()).map(|row| (*family, row)))
}

/// Families whose ops only move, create or describe data, unless their definitions state their work.
const MOVING: &[&str] = &["array", "control_flow", "list", "optional", "random"];

/// Number of operations of an op, if known: from its definition, or else from its family, or one per element for a pointwise
/// op. Ops that are never compiled count as no work.
pub fn op_work(op: &str) -> Option<Work> {
    static KNOWN: std::sync::OnceLock<foldhash::HashMap<&'static str, Work>> = std::sync::OnceLock::new();
    let known = || {
        let rows = all_ops().filter_map(|(family, row)| {
            let moves = MOVING.contains(&family).then_some(Work::None);
            let each = matches!(row.shapes, ShapeInference::Pointwise).then_some(Work::PerOutputElement(1));
            row.work.or(moves).or(each).map(|work| (row.name, work))
        });
        rows.chain(host::ROWS.iter().map(|row| (row.name, Work::None))).collect()
    };
    KNOWN.get_or_init(known).get(op).copied()
}
