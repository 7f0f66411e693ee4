//! Fake quantisation of the operands of a frozen graph's products, by ranges that were measured.
//!
//! Before each matrix product and convolution of `f32` by constant weights, the activation goes through `FakeQuantWithMinMaxVars` and the weights
//! through `FakeQuantWithMinMaxVarsPerChannel`, or through the former where features are not the last axis. TensorFlow runs the graph
//! as it is, and its kernels' range is nudged so that zero is a level.
use crate::import::raw::{RawGraph, RawMessage, RawNode, RawValue};
use crate::import::raw_attr as proto;
use std::collections::{HashMap, HashSet};

/// Number of `float` in TensorFlow's `DataType`.
const FLOAT: i32 = 1;
/// Bits of a level.
const BITS: i64 = 8;

/// A product whose operands can be quantised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantizableProduct {
    /// The node's name.
    pub name: String,
    /// The tensor of the activation, as inputs of nodes name it.
    pub activation: String,
    /// The tensor of the weights.
    pub weights: String,
    /// Whether output features are the last axis of the weights, so that each can have a range of its own.
    pub has_features_last: bool,
}

/// Products of the top level of a graph that can be quantised, and others with the reason why they are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProductSearch {
    /// Products of activations by constants, in `f32`.
    pub products: Vec<QuantizableProduct>,
    /// Names of other products, each with a clause whose subject is the product.
    pub kept: Vec<(String, &'static str)>,
}

/// Bounds of the values of a tensor: one pair, or one for each index of the last axis.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorBounds {
    /// Smallest values; zero at most.
    pub low: Vec<f32>,
    /// Largest values; zero at least.
    pub high: Vec<f32>,
}

/// Searches the top level of a graph for products that can be quantised.
pub fn find_products(graph: &RawGraph) -> ProductSearch {
    let nodes: HashMap<&str, &RawNode> = graph.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    let mut search = ProductSearch::default();
    for node in &graph.nodes {
        let flag = |name: &str| attr_number(node, name, 5) == Some(1);
        let has_features_last = match node.op.as_str() {
            "Conv2D" => true,
            "MatMul" => !flag("transpose_b"),
            "BatchMatMulV2" => !flag("adj_y"),
            "DepthwiseConv2dNative" => false,
            _ => continue,
        };
        match quantizable(node, &nodes) {
            Ok((activation, weights)) => {
                search.products.push(QuantizableProduct {
                    name: node.name.clone(),
                    activation,
                    weights,
                    has_features_last,
                });
            }
            Err(reason) => search.kept.push((node.name.clone(), reason)),
        }
    }
    search
}

/// The activation and the weights of a product, or the reason why it is kept.
fn quantizable(node: &RawNode, nodes: &HashMap<&str, &RawNode>) -> Result<(String, String), &'static str> {
    if attr_number(node, "T", 6) != Some(FLOAT as u64) {
        return Err("its type is not f32");
    }
    let [activation, weights, ..] = &node.inputs[..] else { return Err("it has no two inputs") };
    let source = |input: &str| {
        let mut at = *nodes.get(node_of(input))?;
        while at.op == "Identity" {
            at = *nodes.get(node_of(at.inputs.first()?))?;
        }
        Some(at)
    };
    let is_quantized = |input: &str| source(input).is_some_and(|node| node.op.contains("Quant"));
    if is_quantized(activation) || is_quantized(weights) {
        return Err("it is quantised already");
    }
    if source(weights).is_none_or(|node| node.op != "Const") {
        return Err("its weights are no constant");
    }
    if source(activation).is_some_and(|node| node.op == "Const") {
        return Err("its activation is a constant");
    }
    Ok((activation.clone(), weights.clone()))
}

/// The name of the node that an input names.
fn node_of(input: &str) -> &str {
    let name = input.trim_start_matches('^');
    name.split(':').next().unwrap_or(name)
}

/// Numeric value of an attribute, from the field of its AttrValue with the number `field`.
fn attr_number(node: &RawNode, name: &str, field: u32) -> Option<u64> {
    let (_, value) = node.attrs.iter().find(|(key, _)| key == name)?;
    let message = RawMessage::parse(value, "AttrValue").ok()?;
    message.fields.into_iter().find_map(|(number, value)| match value {
        RawValue::Varint(v) if number == field => Some(v),
        _ => None,
    })
}

/// Puts fake quantisation before the operands of `products`. Tensors without bounds stay as they are.
pub fn insert_fake_quantization(
    graph: &mut RawGraph,
    products: &[QuantizableProduct],
    bounds: &HashMap<String, TensorBounds>,
) {
    let mut taken: HashSet<String> = graph.nodes.iter().map(|node| node.name.clone()).collect();
    let mut quantized: HashMap<(&str, bool), String> = HashMap::new();
    let mut added = Vec::new();
    for product in products {
        let Some(at) = graph.nodes.iter().position(|node| node.name == product.name) else { continue };
        for (place, tensor) in [&product.activation, &product.weights].into_iter().enumerate() {
            let Some(range) = bounds.get(tensor) else { continue };
            let is_weight = place == 1;
            let name = quantized.entry((tensor, is_weight)).or_insert_with(|| {
                let stem = format!("{}/fake_quant", tensor.replace(':', "_"));
                let name = free_name(&mut taken, &stem);
                let ends = [("min", &range.low), ("max", &range.high)].map(|(end, values)| {
                    let end = free_name(&mut taken, &format!("{name}/{end}"));
                    added.push(constant(&end, values));
                    end
                });
                added.push(fake_quantization(&name, tensor, ends, range.low.len(), is_weight));
                name
            });
            graph.nodes[at].inputs[place].clone_from(name);
        }
    }
    graph.nodes.extend(added);
}

/// A name like `stem` that no node has; it is taken from now on.
fn free_name(taken: &mut HashSet<String>, stem: &str) -> String {
    let mut name = stem.to_string();
    let mut number = 0;
    while !taken.insert(name.clone()) {
        number += 1;
        name = format!("{stem}_{number}");
    }
    name
}

/// A constant of type `float`: a scalar, or a vector of several values.
fn constant(name: &str, values: &[f32]) -> RawNode {
    let sizes = if values.len() > 1 { vec![values.len() as u64] } else { Vec::new() };
    let mut node = RawNode { name: name.to_string(), op: "Const".to_string(), ..RawNode::default() };
    node.set_attr("dtype", proto::dtype(FLOAT));
    node.set_attr("value", proto::float_tensor(&sizes, values));
    node
}

/// A node of fake quantisation of a tensor between the values of two nodes, of which there may be one for each channel. A narrow range
/// leaves out the smallest level, so that levels are symmetric.
fn fake_quantization(name: &str, tensor: &str, ends: [String; 2], channels: usize, is_narrow: bool) -> RawNode {
    let op = if channels > 1 { "FakeQuantWithMinMaxVarsPerChannel" } else { "FakeQuantWithMinMaxVars" };
    let inputs = [tensor.to_string()].into_iter().chain(ends).collect();
    let mut node = RawNode { name: name.to_string(), op: op.to_string(), inputs, ..RawNode::default() };
    node.set_attr("num_bits", proto::int(BITS));
    node.set_attr("narrow_range", proto::boolean(is_narrow));
    node
}
