//! Collectives by which devices exchange the parts of arrays.
use super::sharding::Sharding;
use crate::hlo::attrs::ForeignOp;
use crate::hlo::groups::format_groups;
use crate::hlo::stablehlo::converter::Converter;
use crate::hlo::{InstId, symbolic};
use crate::scalar::ScalarOp;

/// A collective of groups of devices, with no computation yet; `dim` is the dimension along which it joins parts.
fn collective(opcode: &str, dim: Option<usize>, groups: &[Vec<u32>]) -> ForeignOp {
    let mut attrs: Vec<(&str, String)> = dim.map(|dim| ("dimensions", format!("{{{dim}}}"))).into_iter().collect();
    attrs.extend([("replica_groups", format_groups(groups)), ("channel_id", "1".to_string())]);
    if opcode != "collective-broadcast" {
        attrs.push(("use_global_device_ids", "true".to_string()));
    }
    let attrs = attrs.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    ForeignOp { opcode: opcode.to_string(), attrs, calls: Vec::new() }
}

impl Converter<'_, '_> {
    /// Joins the parts of an array along one dimension.
    pub(super) fn all_gather(&mut self, x: InstId, dim: usize, sharding: &Sharding) -> InstId {
        let call = collective("all-gather", Some(dim), &sharding.groups_along(dim));
        let b = self.builder();
        let mut dims = b.dims(x).to_vec();
        dims[dim] *= sharding.parts[dim];
        let shape = symbolic::Shape::array(b.dtype(x), dims);
        b.push(symbolic::Op::Foreign(Box::new(call)), &[x], shape)
    }

    /// Combines the values of the devices of each group.
    pub(super) fn all_reduce(&mut self, x: InstId, combiner: ScalarOp, groups: &[Vec<u32>]) -> InstId {
        let b = self.builder();
        let comp = b.scalar_computation(combiner, b.dtype(x));
        let call = ForeignOp { calls: vec![("to_apply".to_string(), comp)], ..collective("all-reduce", None, groups) };
        let shape = b.shape(x).clone();
        b.push(symbolic::Op::Foreign(Box::new(call)), &[x], shape)
    }

    /// The array that one device has, on all devices.
    pub(super) fn broadcast_from(&mut self, x: InstId, device: u32) -> InstId {
        let count = self.functions.partition_count() as u32;
        let group: Vec<u32> = [device].into_iter().chain((0..count).filter(|&other| other != device)).collect();
        let b = self.builder();
        let shape = b.shape(x).clone();
        if shape.as_array().is_none() {
            return x;
        }
        let call = collective("collective-broadcast", None, &[group]);
        b.push(symbolic::Op::Foreign(Box::new(call)), &[x], shape)
    }
}
