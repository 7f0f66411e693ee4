//! Functions that implement one interface for several devices, as those of TensorFlow Probability's random numbers do: a call runs the
//! one for the device that it is on, whichever it names (TensorFlow's `implementation_selector`). Compiled code is a CPU's.
use crate::graph::{Attr, Function};
use indexmap::IndexMap;
use std::sync::Arc;

/// Attributes of a function: what it implements, and for which device; with no device it is for those that have none of their own.
const INTERFACE: &str = "api_implements";
const DEVICE: &str = "api_preferred_device";
const CPU: &str = "CPU";
/// Attributes of a function that was made for gradients: of one that keeps what its gradient needs, and of such a gradient.
const FOR_GRADIENTS: [&str; 2] = ["backward_function_name", "forward_function_name"];

/// Gives functions that implement something for another device the body of the one that does for a CPU. Where several take and give
/// as many values, such as those that keep what a gradient needs, all stay as they are.
pub fn select(functions: &mut IndexMap<Arc<str>, Function>) {
    let is_other = |f: &Function| text(f, INTERFACE).is_some() && text(f, DEVICE) != Some(CPU);
    let chosen: Vec<Function> =
        functions.values().filter(|f| is_other(f)).filter_map(|f| for_cpu(functions, f)).collect();
    for function in chosen {
        functions.insert(function.name.clone(), function);
    }
}

/// The only function that is for a CPU what `other` is for another device, under its name.
fn for_cpu(functions: &IndexMap<Arc<str>, Function>, other: &Function) -> Option<Function> {
    let found: Vec<&Function> = functions.values().filter(|own| is_same(own, other)).collect();
    let [own] = found[..] else { return None };
    Some(Function { name: other.name.clone(), ..own.clone() })
}

/// Whether `own` is for a CPU what `other` is for another device.
fn is_same(own: &Function, other: &Function) -> bool {
    let part = |f: &Function| FOR_GRADIENTS.map(|name| text(f, name).is_some());
    let types = |f: &Function| f.args.iter().map(|&a| f.graph.nodes[a].tf_type("T")).collect::<Vec<_>>();
    text(own, DEVICE) == Some(CPU)
        && text(own, INTERFACE) == text(other, INTERFACE)
        && part(own) == part(other)
        && own.rets.len() == other.rets.len()
        && types(own) == types(other)
}

fn text<'f>(function: &'f Function, name: &str) -> Option<&'f str> {
    match function.attrs.iter().find(|a| &*a.0 == name) {
        Some((_, Attr::Str(text))) => std::str::from_utf8(text).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Endpoint, Graph, Node, NodeId, TfType};
    use crate::tensor::DType;

    /// A function of one value of a type, by `op`, for a device.
    fn function(name: &str, op: &str, dtype: DType, device: Option<&str>) -> Function {
        let own = |name: &str, op: &str, inputs: &[Endpoint]| Node {
            name: name.into(),
            op: op.into(),
            device: "".into(),
            inputs: inputs.into(),
            controls: [].into(),
            attrs: [("T".into(), Attr::Type(TfType::Data(dtype)))].into(),
        };
        let (arg, result) = (NodeId(0), Endpoint { node: NodeId(1), port: 0 });
        let nodes = [own("x", "_Arg", &[]), own("y", op, &[Endpoint { node: arg, port: 0 }])];
        let told = |key: &str, value: &str| (key.into(), Attr::Str(value.as_bytes().to_vec().into()));
        let device = device.map(|device| told(DEVICE, device));
        Function {
            name: name.into(),
            args: vec![arg],
            rets: vec![result],
            control_rets: Vec::new(),
            ret_names: vec!["y".into()],
            attrs: device.into_iter().chain([told(INTERFACE, "i")]).collect(),
            stateful: false,
            graph: Graph { nodes: nodes.into_iter().collect() },
        }
    }

    /// The op of each function after the choice.
    fn chosen(all: &[Function]) -> Vec<String> {
        let mut functions = all.iter().map(|f| (f.name.clone(), f.clone())).collect();
        select(&mut functions);
        assert!(functions.iter().all(|(name, f)| *name == f.name));
        functions.values().map(|f| f.graph.nodes[NodeId(1)].op.to_string()).collect()
    }

    #[test]
    fn a_call_runs_what_is_for_a_cpu() {
        let other = function("other", "Relu", DType::F32, None);
        let gpu = function("gpu", "Elu", DType::F32, Some("GPU"));
        let cpu = function("cpu", "Tanh", DType::F32, Some(CPU));
        assert_eq!(chosen(&[other, gpu, cpu]), ["Tanh", "Tanh", "Tanh"]);
    }

    #[test]
    fn what_takes_something_else_or_is_not_alone_stays() {
        let other = || function("other", "Relu", DType::F32, None);
        let wide = function("wide", "Tanh", DType::F64, Some(CPU));
        assert_eq!(chosen(&[other(), wide]), ["Relu", "Tanh"]);
        let [one, two] = ["one", "two"].map(|name| function(name, "Tanh", DType::F32, Some(CPU)));
        assert_eq!(chosen(&[other(), one, two]), ["Relu", "Tanh", "Tanh"]);
    }

    #[test]
    fn what_keeps_values_for_a_gradient_is_no_implementation_of_what_does_not() {
        let other = function("other", "Relu", DType::F32, None);
        let cpu = function("cpu", "Tanh", DType::F32, Some(CPU));
        let mut keeps = function("keeps", "Elu", DType::F32, Some(CPU));
        let told = (FOR_GRADIENTS[0].into(), Attr::Str(b"backward".to_vec().into()));
        keeps.attrs = keeps.attrs.iter().cloned().chain([told]).collect();
        assert_eq!(chosen(&[other, keeps, cpu]), ["Tanh", "Elu", "Tanh"]);
    }
}
