//! The Python objects of a SavedModel: finds the objects that a function has captured, and the checkpoint key of each object's value.
//!
//! Two graphs hold this information: `SavedObjectGraph` in the model's file has the functions, and the checkpoint's own object graph
//! has the keys of values. Objects of the two are identified if the same path of names leads to both from the root.
//! Source: `saved_object_graph.proto`, `trackable_object_graph.proto`.
use super::wire::{WireField, WireReader};
use crate::diag::Result;
use bytes::Bytes;
use std::collections::HashMap;

/// The key under which a checkpoint stores its object graph.
pub const CHECKPOINT_KEY: &str = "_CHECKPOINTABLE_OBJECT_GRAPH";

/// The child of the root object that holds the signatures.
const SIGNATURES: &str = "signatures";

/// The name of a variable's value among its object's attributes.
const VALUE: &str = "VARIABLE_VALUE";

/// An object of either object graph.
#[derive(Debug, Default)]
struct Object {
    /// Child objects: name and index.
    children: Vec<(String, usize)>,
    /// Slot variables of an optimizer: index of the variable, name of the slot, index of the slot variable.
    slots: Vec<(usize, String, usize)>,
    /// Checkpoint key of the object's value.
    key: Option<String>,
    /// Name of the library function that the object represents.
    function: Option<String>,
}

/// The objects of a SavedModel.
#[derive(Debug, Default)]
pub struct ObjectGraph {
    objects: Vec<Object>,
    /// By function of the library: the objects that it takes as additional arguments.
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

    /// The objects that the function `name` has captured, in the order of its last arguments; empty for an unknown function.
    pub fn captured_objects(&self, name: &str) -> &[usize] {
        self.captured.get(name).map_or(&[], Vec::as_slice)
    }

    /// The name of the function behind the signature `name`.
    pub fn signature_function(&self, name: &str) -> Option<&str> {
        let child = |object: usize, name: &str| {
            let children = &self.objects.get(object)?.children;
            children.iter().find(|(child, _)| child == name).map(|(_, to)| *to)
        };
        self.objects.get(child(child(0, SIGNATURES)?, name)?)?.function.as_deref()
    }

    /// By object: the key of its value in the checkpoint, whose serialized object graph is `saved`. Errors: `BadEncoding`.
    pub fn checkpoint_keys(&self, saved: &Bytes) -> Result<HashMap<usize, String>> {
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

    /// By object: the object of `other` that is reached from the root by the same names.
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
        // a slot variable has no name of its own; it is identified by its variable, which must be matched first
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

/// Parses an entry of `concrete_functions`: a name, and the captured objects.
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
                        part.for_each_number(|id| bound.push(usize::try_from(id).unwrap_or(usize::MAX)))?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok((name, bound))
}

/// Parses a `SavedObject` or a `TrackableObject`; the fields of interest have the same numbers.
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

/// Parses a `SerializedTensor` into its name and checkpoint key.
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

/// The index of an object; a negative one becomes an index that no graph has.
fn index(field: &WireField) -> Result<usize> {
    Ok(usize::try_from(field.varint()?).unwrap_or(usize::MAX))
}
