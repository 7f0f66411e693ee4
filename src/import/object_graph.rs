//! The Python objects of a SavedModel: which of them a function has captured, and under which name the checkpoint has the
//! value of each.
//!
//! Two graphs tell it. `SavedObjectGraph` in the model's file has the functions, and the checkpoint's own object graph the
//! names of values. Objects of the two are the same where the same names lead to them from the root.
//! Source: `saved_object_graph.proto`, `trackable_object_graph.proto`.
use super::wire::{WireField, WireReader};
use crate::diag::Result;
use bytes::Bytes;
use std::collections::HashMap;

/// The name under which a checkpoint keeps its object graph.
pub const CHECKPOINT_KEY: &str = "_CHECKPOINTABLE_OBJECT_GRAPH";

/// The child of the root that has the signatures.
const SIGNATURES: &str = "signatures";

/// The attribute of a variable's value.
const VALUE: &str = "VARIABLE_VALUE";

/// An object of either graph.
#[derive(Debug, Default)]
struct Object {
    /// Names with the objects that they lead to.
    children: Vec<(String, usize)>,
    /// Slot variables of an optimizer: the variable, the slot's name, and the slot variable.
    slots: Vec<(usize, String, usize)>,
    /// Key of the value in the checkpoint.
    key: Option<String>,
    /// The function of the library that it is.
    function: Option<String>,
}

/// The objects of a SavedModel.
#[derive(Debug, Default)]
pub struct ObjectGraph {
    objects: Vec<Object>,
    /// The objects that a function of the library takes behind its arguments, by the function's name.
    captured: HashMap<String, Vec<usize>>,
}

impl ObjectGraph {
    /// Reads a `SavedObjectGraph`. Errors: `BadEncoding`.
    pub fn read(mut reader: WireReader) -> Result<ObjectGraph> {
        let mut graph = ObjectGraph::default();
        while let Some(field) = reader.next()? {
            match field.number {
                1 => graph.objects.push(read_object(field.message("SavedObject")?)?),
                2 => {
                    let (name, bound) = read_function(&field)?;
                    graph.captured.insert(name, bound);
                }
                _ => {}
            }
        }
        Ok(graph)
    }

    /// The objects that the function `name` has captured, in the order of its last arguments; none where it is not known.
    pub fn captured(&self, name: &str) -> &[usize] {
        self.captured.get(name).map_or(&[], Vec::as_slice)
    }

    /// The name of the function behind the signature `name`.
    pub fn signature(&self, name: &str) -> Option<&str> {
        let child = |object: usize, name: &str| {
            let children = &self.objects.get(object)?.children;
            children.iter().find(|(child, _)| child == name).map(|(_, to)| *to)
        };
        self.objects.get(child(child(0, SIGNATURES)?, name)?)?.function.as_deref()
    }

    /// For each object that has a value in the checkpoint whose object graph is `saved`, the value's name there.
    /// Errors: `BadEncoding`.
    pub fn keys(&self, saved: &Bytes) -> Result<HashMap<usize, String>> {
        let mut reader = WireReader::new(saved, "TrackableObjectGraph");
        let mut other = Vec::new();
        while let Some(field) = reader.next()? {
            if field.number == 1 {
                other.push(read_object(field.message("TrackableObject")?)?);
            }
        }
        let same = self.matched(&other);
        Ok(same.into_iter().filter_map(|(own, there)| Some((own, other[there].key.clone()?))).collect())
    }

    /// Own objects with those of `other` that the same names lead to.
    fn matched(&self, other: &[Object]) -> HashMap<usize, usize> {
        let mut same: HashMap<usize, usize> = HashMap::new();
        let mut todo = vec![(0, 0)];
        while let Some((own, there)) = todo.pop() {
            let (Some(a), Some(b)) = (self.objects.get(own), other.get(there)) else { continue };
            if same.contains_key(&own) {
                continue;
            }
            same.insert(own, there);
            let names: HashMap<&str, usize> = b.children.iter().map(|(name, to)| (name.as_str(), *to)).collect();
            todo.extend(a.children.iter().filter_map(|(name, to)| Some((*to, *names.get(name.as_str())?))));
        }
        // a slot has no name of its own: it is that of a variable, which must be known first
        let pairs: Vec<(usize, usize)> = same.iter().map(|(a, b)| (*a, *b)).collect();
        for (own, there) in pairs {
            let named = |(variable, name, slot): &(usize, String, usize)| ((*variable, name.clone()), *slot);
            let slots: HashMap<(usize, String), usize> = other[there].slots.iter().map(named).collect();
            for (variable, name, slot) in &self.objects[own].slots {
                let found = same.get(variable).and_then(|v| slots.get(&(*v, name.clone())));
                if let Some(&found) = found.filter(|&&found| found < other.len()) {
                    same.entry(*slot).or_insert(found);
                }
            }
        }
        same
    }
}

/// One entry of `concrete_functions`: a name, and the objects that are captured.
fn read_function(field: &WireField) -> Result<(String, Vec<usize>)> {
    let mut entry = field.message("ConcreteFunctionsEntry")?;
    let (mut name, mut bound) = (String::new(), Vec::new());
    while let Some(part) = entry.next()? {
        match part.number {
            1 => name = part.text()?.to_string(),
            2 => {
                let mut function = part.message("SavedConcreteFunction")?;
                while let Some(part) = function.next()? {
                    if part.number == 2 {
                        part.numbers(|id| bound.push(usize::try_from(id).unwrap_or(usize::MAX)))?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok((name, bound))
}

/// A `SavedObject` or a `TrackableObject`: what is read of them has the same numbers.
fn read_object(mut reader: WireReader) -> Result<Object> {
    let mut object = Object::default();
    // field 2 is a list of attributes in a `TrackableObject`; a `SavedObject` has none
    while let Some(field) = reader.next()? {
        match field.number {
            1 => object.children.push(read_child(&field)?),
            2 => {
                let (name, key) = read_attribute(&field)?;
                if name == VALUE {
                    object.key = Some(key);
                }
            }
            3 => object.slots.push(read_slot(&field)?),
            // a `SavedBareConcreteFunction`; a `TrackableObject` has no such field
            8 => {
                let mut function = field.message("SavedBareConcreteFunction")?;
                while let Some(part) = function.next()? {
                    if part.number == 1 {
                        object.function = Some(part.text()?.to_string());
                    }
                }
            }
            _ => {}
        }
    }
    Ok(object)
}

fn read_child(field: &WireField) -> Result<(String, usize)> {
    let mut reader = field.message("ObjectReference")?;
    let (mut name, mut to) = (String::new(), 0);
    while let Some(part) = reader.next()? {
        match part.number {
            1 => to = index(&part)?,
            2 => name = part.text()?.to_string(),
            _ => {}
        }
    }
    Ok((name, to))
}

fn read_slot(field: &WireField) -> Result<(usize, String, usize)> {
    let mut reader = field.message("SlotVariableReference")?;
    let (mut variable, mut name, mut slot) = (0, String::new(), 0);
    while let Some(part) = reader.next()? {
        match part.number {
            1 => variable = index(&part)?,
            2 => name = part.text()?.to_string(),
            3 => slot = index(&part)?,
            _ => {}
        }
    }
    Ok((variable, name, slot))
}

/// Name and key of a `SerializedTensor`.
fn read_attribute(field: &WireField) -> Result<(String, String)> {
    let mut reader = field.message("SerializedTensor")?;
    let (mut name, mut key) = (String::new(), String::new());
    while let Some(part) = reader.next()? {
        match part.number {
            1 => name = part.text()?.to_string(),
            3 => key = part.text()?.to_string(),
            _ => {}
        }
    }
    Ok((name, key))
}

/// A node's number; one that no graph has where it is negative.
fn index(field: &WireField) -> Result<usize> {
    Ok(usize::try_from(field.number()?).unwrap_or(usize::MAX))
}
