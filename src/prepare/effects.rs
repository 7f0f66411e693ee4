//! Warnings about effects that compiled code does not have: printing, assertions, summaries, files, queues. One warning for each sort.
use crate::diag::{Code, Diagnostic};
use crate::graph::{Node, Program};
use crate::opdef::{self, Effect, op_effect};
use crate::ops;
use std::collections::BTreeMap;

/// Upper bound on the nodes that a warning names.
const MAX_NAMED: usize = 3;

/// Warnings, one for each sort of effect that is dropped: those of the pruned nodes `skipped`, and of nodes in `program`.
pub fn dropped_effect_warnings(skipped: &[Node], program: &Program, is_checked: bool) -> Vec<Diagnostic> {
    let top = skipped
        .iter()
        .map(|n| (None, n))
        .chain(program.graph.nodes.values().filter(|n| is_dropped(n)).map(|n| (None, n)));
    let bodies = program.functions.values().flat_map(|f| f.graph.nodes.values().map(move |n| (Some(&f.name), n)));
    let bodies = bodies.filter(|(_, n)| is_dropped(n));
    let mut groups: BTreeMap<Effect, Vec<String>> = BTreeMap::new();
    for (function, node) in top.chain(bodies) {
        let Some(effect) = op_effect(&node.op).filter(|_| !(is_checked && ops::is_assertion(&node.op))) else {
            continue;
        };
        let inside = function.map_or(String::new(), |f| format!(" in the function `{f}`"));
        groups.entry(effect).or_default().push(format!("`{}` ({}){inside}", node.name, node.op));
    }
    groups.into_iter().map(|(effect, nodes)| dropped_effect_warning(effect, &nodes)).collect()
}

/// Removes the inputs of assertions other than their conditions: the text to print, which contains strings.
pub fn strip_assertion_data(mut program: Program) -> Program {
    let bodies = program.functions.values_mut().map(|f| &mut f.graph);
    for graph in std::iter::once(&mut program.graph).chain(bodies) {
        for node in graph.nodes.values_mut().filter(|n| &*n.op == "Assert") {
            node.inputs = node.inputs.iter().take(1).copied().collect();
            node.attrs = node.attrs.iter().filter(|a| &*a.0 != "T").cloned().collect();
        }
    }
    program
}

/// Whether the effect of a node is dropped. A node that has results but no lowering is an error instead.
fn is_dropped(node: &Node) -> bool {
    ops::find_op(&node.op).is_some() || opdef::find_def(&node.op).is_some_and(|def| def.outputs.is_empty())
}

fn dropped_effect_warning(effect: Effect, nodes: &[String]) -> Diagnostic {
    let what = effect.description();
    let message = match nodes.len() {
        1 => format!("compiled code leaves out 1 node of those that {what}"),
        n => format!("compiled code leaves out {n} nodes that {what}"),
    };
    let more = nodes.len().saturating_sub(MAX_NAMED);
    let mut named = nodes[..nodes.len() - more].join(", ");
    if more > 0 {
        named += &format!(" and {more} more");
    }
    let help = match effect {
        Effect::Print => "fetch what is printed; TensorFlow's jit_compile=True refuses to print",
        Effect::Check => "check the values before or behind the call; XLA leaves such checks out as well",
        Effect::Summary | Effect::File | Effect::Python | Effect::Outside => {
            "fetch what is needed for it, and do it behind the call"
        }
    };
    Diagnostic::new(Code::EffectDropped, message).note(named).help(help)
}
