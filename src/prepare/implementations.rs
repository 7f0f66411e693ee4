//! Selection among functions that implement one interface for several devices, such as those of TensorFlow Probability's random numbers: a
//! call runs the function for its device, whichever it names (TensorFlow's `implementation_selector`). Compiled code runs on a CPU.
use crate::graph::{Attr, Function};
use indexmap::IndexMap;
use std::sync::Arc;

/// Attributes of a function: the interface that it implements, and the device; without a device, it is the default implementation.
const INTERFACE: &str = "api_implements";
const DEVICE: &str = "api_preferred_device";
const CPU: &str = "CPU";
/// Attributes of functions made for gradients: of a forward function that keeps intermediates, and of its backward function.
const FOR_GRADIENTS: [&str; 2] = ["backward_function_name", "forward_function_name"];

/// Replaces the bodies of functions for other devices by that of the CPU's implementation of the same interface. Functions with several
/// candidates of the same signature are left unchanged.
pub fn select_cpu_implementations(functions: &mut IndexMap<Arc<str>, Function>) {
    let is_other = |f: &Function| string_attr(f, INTERFACE).is_some() && string_attr(f, DEVICE) != Some(CPU);
    let chosen: Vec<Function> =
        functions.values().filter(|f| is_other(f)).filter_map(|f| cpu_implementation(functions, f)).collect();
    for function in chosen {
        functions.insert(function.name.clone(), function);
    }
}

/// The CPU's implementation of the interface of `other`, under the name of `other`; `None` if there is none or more than one.
fn cpu_implementation(functions: &IndexMap<Arc<str>, Function>, other: &Function) -> Option<Function> {
    let found: Vec<&Function> = functions.values().filter(|own| is_cpu_implementation_of(own, other)).collect();
    let [own] = found[..] else { return None };
    Some(Function { name: other.name.clone(), ..own.clone() })
}

/// Whether `own` is a CPU's implementation of the interface of `other`, with the same signature.
fn is_cpu_implementation_of(own: &Function, other: &Function) -> bool {
    let part = |f: &Function| FOR_GRADIENTS.map(|name| string_attr(f, name).is_some());
    let types = |f: &Function| f.args.iter().map(|&a| f.graph.nodes[a].tf_type("T")).collect::<Vec<_>>();
    string_attr(own, DEVICE) == Some(CPU)
        && string_attr(own, INTERFACE) == string_attr(other, INTERFACE)
        && part(own) == part(other)
        && own.rets.len() == other.rets.len()
        && types(own) == types(other)
}

fn string_attr<'f>(function: &'f Function, name: &str) -> Option<&'f str> {
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
        select_cpu_implementations(&mut functions);
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
