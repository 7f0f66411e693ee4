//! Whether the arrays of a bound have room for those of all smaller sizes: `max(8 - n, 0)` is larger for smaller `n`.
use super::extent::Extent;
use super::instance::{Departure, Form, departure};
use crate::hlo::Module;
use std::collections::HashMap;

/// The first array of a module for the sizes `bound` that is larger at one of `points`.
pub fn lacks(module: &Module, forms: &[Form], points: &[Vec<u64>], bound: &[u64]) -> Option<Departure> {
    let mut known: HashMap<&Extent, bool> = HashMap::new();
    for (id, form) in module.reachable().into_iter().zip(forms) {
        for (&inst, varying) in form.order.iter().zip(form.varying.iter()) {
            let mut sizes = varying.dims.iter().flatten().filter(|e| e.varies());
            let lacks = sizes.any(|extent| {
                let room = extent.at(bound);
                *known.entry(extent).or_insert_with(|| points.iter().any(|p| extent.at(p) > room))
            });
            if lacks {
                return Some(departure(&module.comps[id].insts[inst], "an array is larger for smaller sizes"));
            }
        }
    }
    None
}
