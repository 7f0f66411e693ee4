//! StableHLO's collectives: device groups, dimensions, and the `all_to_all` that splits along another dimension than it
//! concatenates.
use super::attribute_values::{AttrCollector, AttrResult, flag, int_or};
use super::converter::{Converter, error_at};
use super::tree::{MlirAttr, Operation};
use crate::diag::{Code, Result};
use crate::hlo::attrs::ForeignOp;
use crate::hlo::{InstId, Op, Shape};

/// Converts the attributes of a collective.
///
/// # Errors
/// The reason why the operation is refused.
pub(super) fn attributes(op: &Operation, opcode: &str, out: &mut AttrCollector) -> AttrResult<()> {
    let dimension = match opcode {
        "all-gather" => Some("all_gather_dim"),
        "reduce-scatter" => Some("scatter_dimension"),
        "all-to-all" => Some("split_dimension"),
        _ => None,
    };
    if let Some(name) = dimension {
        out.add_opaque("dimensions", format!("{{{}}}", int_or(op, &[name], 0)?));
    }
    let lists = if opcode == "collective-permute" { "source_target_pairs" } else { "replica_groups" };
    out.add_opaque(lists, groups(op.attr(&[lists]))?);
    let channel = channel(op)?;
    if channel > 0 {
        out.add_opaque("channel_id", channel.to_string());
    }
    if flag(op, "use_global_device_ids") {
        out.add_opaque("use_global_device_ids", "true".to_string());
    }
    Ok(())
}

/// Channel number; 0 without a channel.
fn channel(op: &Operation) -> AttrResult<i64> {
    match op.attr(&["channel_handle"]) {
        Some(MlirAttr::Dict(entries)) => {
            let handle = entries.iter().find(|e| e.0 == "handle").and_then(|e| e.1.ints());
            Ok(handle.and_then(|h| h.first().copied()).unwrap_or(0))
        }
        _ => int_or(op, &["channel_id"], 0),
    }
}

/// Rows of numbers in HLO's syntax; -1 pads rows that are shorter than others.
fn groups(value: Option<&MlirAttr>) -> AttrResult<String> {
    let rows: Vec<Vec<i64>> = match value {
        None => Vec::new(),
        Some(MlirAttr::Dense(t)) => {
            let [_, width] = t.dims[..] else { return Err("groups of devices are rows of numbers".to_string()) };
            let all = t.to_i64s().ok_or("groups of devices are whole numbers")?;
            if width == 0 { Vec::new() } else { all.chunks(width as usize).map(<[i64]>::to_vec).collect() }
        }
        Some(_) => return Err("groups of devices are rows of numbers".to_string()),
    };
    let row = |row: Vec<i64>| {
        let all: Vec<String> = row.into_iter().filter(|&n| n >= 0).map(|n| n.to_string()).collect();
        format!("{{{}}}", all.join(","))
    };
    Ok(format!("{{{}}}", rows.into_iter().map(row).collect::<Vec<_>>().join(",")))
}

impl Converter<'_, '_> {
    /// Converts an `all_to_all` of arrays: HLO's concatenates along the dimension that it splits, so that parts are moved afterwards.
    pub(super) fn all_to_all(&mut self, op: &Operation, operands: &[InstId]) -> Result<Vec<InstId>> {
        let refuse = |message: String| error_at(op, Code::HloInvalid, message);
        let split = int_or(op, &["split_dimension"], 0).map_err(refuse)?;
        let join = int_or(op, &["concat_dimension"], split).map_err(refuse)?;
        let count = int_or(op, &["split_count"], 1).map_err(refuse)?;
        let mut out = AttrCollector::default();
        attributes(op, "all-to-all", &mut out).map_err(refuse)?;
        let attrs = out.into_opaque();
        let mut results = Vec::new();
        for &x in operands {
            let Some(array) = self.builder().shape(x).as_array().cloned() else {
                return Err(refuse("expects arrays".to_string()));
            };
            let axis = |d: i64| usize::try_from(d).ok().filter(|&d| d < array.rank());
            let (Some(split), Some(join), Ok(count)) = (axis(split), axis(join), u64::try_from(count)) else {
                return Err(refuse("a dimension is beyond the rank".to_string()));
            };
            if count == 0 || array.dims[split] % count != 0 {
                return Err(refuse(format!("{} does not divide into {count} parts", array.dims[split])));
            }
            let call = ForeignOp { opcode: "all-to-all".to_string(), attrs: attrs.clone(), calls: Vec::new() };
            let moved = self.builder().push(Op::Foreign(Box::new(call)), &[x], Shape::Array(array.clone()));
            results.push(if split == join { moved } else { self.exchange_parts(moved, split, join, count) });
        }
        Ok(results)
    }

    /// Moves the parts along `split` so that they are concatenated along `join`.
    fn exchange_parts(&mut self, x: InstId, split: usize, join: usize, count: u64) -> InstId {
        let b = self.builder();
        let mut dims = b.dims(x).to_vec();
        dims[split] /= count;
        let mut apart = dims.clone();
        apart.insert(split, count.into());
        let parts = b.reshape(x, &apart);
        // Axes of the parts, without the part axis, and its new position.
        let mut perm: Vec<usize> = (0..apart.len()).filter(|&d| d != split).collect();
        perm.insert(join, split);
        let turned = b.transpose(parts, &perm);
        dims[join] *= count;
        b.reshape(turned, &dims)
    }
}
