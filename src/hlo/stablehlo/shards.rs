//! Manually partitioned code, as JAX's `shard_map` is exported: `sdy.manual_computation`, and the calls `SPMDFullToShardShape`
//! and `SPMDShardToFullShape` around it in older files.
//!
//! A module becomes the program of one device: arguments and results are the device's shards. There is no automatic
//! partitioner: outside of a manual computation, only whole arrays can be computed with, replicated on each device.
use super::converter::{Converter, SymbolScope, error_at};
use super::tree::{FuncOp, MlirAttr, Operation, RegionBlock, ValueRef};
use crate::diag::{Code, Error, Result};
use crate::hlo::{InstId, Shape, symbolic};

/// Cast between the types of two dialects, which are the same here.
pub(super) const CAST: &str = "builtin.unrealized_conversion_cast";

/// Operations that state where an array is and give it as it is.
pub(super) const PLACEMENTS: &[&str] = &["sdy.sharding_constraint", "sdy.reshard", "sdy.propagation_barrier"];

/// Parses a mesh, `<["i"=2, "j"=2]>`; `None` if devices are listed in a special order.
pub(super) fn parse_mesh(text: &str) -> Option<Vec<(String, u64)>> {
    let inside = text.trim().trim_start_matches('<').trim_end_matches('>').trim();
    let inside = inside.strip_prefix('[')?.strip_suffix(']')?;
    let axes = inside.split(',').map(str::trim).filter(|axis| !axis.is_empty());
    axes.map(|axis| {
        let (name, size) = axis.split_once('=')?;
        Some((name.trim().trim_matches('"').to_string(), size.trim().parse().ok()?))
    })
    .collect()
}

/// Shard of an entry argument that each device has, according to the computations that use it; the whole type if there are
/// none.
pub(super) fn shard_shape<'f>(function: &'f FuncOp, name: &str, whole: &'f Shape) -> &'f Shape {
    let mut names = vec![name];
    for op in &function.body.ops {
        let is_arg = |v: &ValueRef| names.contains(&v.name.as_str());
        match op.name.as_str() {
            CAST if op.operands.iter().any(is_arg) => names.extend(op.results.first().map(String::as_str)),
            "sdy.manual_computation" => {
                let inner = op.regions.first().map_or(&[][..], |region| &region.args[..]);
                if let Some((_, (_, shape))) = op.operands.iter().zip(inner).find(|(v, _)| is_arg(v)) {
                    return shape;
                }
            }
            "stablehlo.custom_call" if target(op) == Some("Sharding") && op.operands.iter().any(is_arg) => {
                let Some(own) = op.results.first() else { continue };
                let part = function.body.ops.iter().find(|next| {
                    target(next) == Some("SPMDFullToShardShape") && next.operands.iter().any(|v| v.name == *own)
                });
                if let Some(shape) = part.and_then(|next| next.types.first()) {
                    return shape;
                }
            }
            _ => {}
        }
    }
    whole
}

fn target(op: &Operation) -> Option<&str> {
    match op.attr(&["call_target_name", "callee"]) {
        Some(MlirAttr::Symbol(name) | MlirAttr::Text(name)) => Some(name),
        _ => None,
    }
}

/// Whether an operation only states the placement of an array, so that it also applies to shards.
fn passes_parts(op: &Operation) -> bool {
    let is_hint = matches!(target(op), Some("Sharding" | "SPMDFullToShardShape" | "SPMDShardToFullShape"));
    let name = op.name.as_str();
    matches!(name, "sdy.manual_computation" | CAST)
        || PLACEMENTS.contains(&name)
        || (op.name == "stablehlo.custom_call" && is_hint)
}

/// Error for an operation on whole arrays that gets shards.
pub(super) fn sharded_operand_error(op: &Operation) -> Error {
    let told = "an array that is cut among devices is computed with as a whole one, which XLA's partitioner would cut";
    error_at(op, Code::HloUnsupported, told).map(|d| d.help("write all of the function inside of shard_map"))
}

impl<'a> Converter<'a, '_> {
    /// Rejects an operation on shards that is written for whole arrays.
    pub(super) fn refuse_shards(&mut self, op: &Operation, operands: &[InstId]) -> Result<()> {
        if passes_parts(op) || !operands.iter().any(|id| self.is_shard(*id)) {
            return Ok(());
        }
        Err(sharded_operand_error(op))
    }

    /// Converts a manual computation in place.
    pub(super) fn convert_manual_computation(
        &mut self,
        op: &'a Operation,
        operands: &[InstId],
        outer: &SymbolScope,
    ) -> Result<Vec<InstId>> {
        let [region] = &op.regions[..] else { return Err(error_at(op, Code::HloSyntax, "expects one region")) };
        self.are_all_axes(op)?;
        if region.args.len() != operands.len() {
            return Err(error_at(op, Code::HloSyntax, "expects as many values as arguments"));
        }
        let mut scope = SymbolScope { open: outer.open, ..SymbolScope::default() };
        for ((name, shape), &id) in region.args.iter().zip(operands) {
            self.has_part(op, id, shape)?;
            scope.values.insert(name.clone(), vec![id]);
        }
        self.enter(op)?;
        let results = self.convert_body(region, &mut scope)?;
        self.leave();
        for (&id, whole) in results.iter().zip(&op.types) {
            self.mark_shard(id, whole);
        }
        Ok(results)
    }

    /// Converts the operations inside, which treat shards like whole arrays.
    fn convert_body(&mut self, region: &'a RegionBlock, scope: &mut SymbolScope) -> Result<Vec<InstId>> {
        let parts = std::mem::take(&mut self.parts_of_arrays);
        let results = self.convert_region(region, scope);
        self.parts_of_arrays = parts;
        results
    }

    /// Converts `Sharding`, `SPMDFullToShardShape` or `SPMDShardToFullShape` of one array; `None` for other calls.
    pub(super) fn convert_sharding_call(&mut self, op: &Operation, operands: &[InstId]) -> Result<Option<Vec<InstId>>> {
        let (&[x], [shape]) = (operands, &op.types[..]) else { return Ok(None) };
        match target(op) {
            Some("Sharding") if self.is_shard(x) => {}
            Some("SPMDFullToShardShape") => {
                self.has_part(op, x, shape)?;
                // Outside, the argument itself remains a shard.
                let own = self.builder().push(symbolic::Op::Copy, &[x], shape.to_symbolic());
                return Ok(Some(vec![own]));
            }
            Some("SPMDShardToFullShape") => self.mark_shard(x, shape),
            _ => return Ok(None),
        }
        Ok(Some(vec![x]))
    }

    /// Whether a value of the current computation is a shard of an array.
    pub(super) fn is_shard(&mut self, id: InstId) -> bool {
        let depth = self.builder().nesting_depth();
        self.parts_of_arrays.contains(&(depth, id))
    }

    /// Records that `id` is a shard of an array of type `whole`.
    pub(super) fn mark_shard(&mut self, id: InstId, whole: &Shape) {
        if !self.builder().shape(id).at_current_sizes().same_type_and_dims(whole) {
            let depth = self.builder().nesting_depth();
            self.parts_of_arrays.insert((depth, id));
        }
    }

    fn has_part(&mut self, op: &Operation, id: InstId, shape: &Shape) -> Result<()> {
        if self.builder().shape(id).pin_sizes().same_type_and_dims(shape) {
            return Ok(());
        }
        let told = format!("a device has {} of an array where it needs {shape}", self.builder().shape(id));
        Err(error_at(op, Code::HloUnsupported, told))
    }

    /// Rejects a computation that leaves some axes of the mesh to the partitioner.
    fn are_all_axes(&self, op: &Operation) -> Result<()> {
        let text = |name: &str| match op.attr(&[name]) {
            Some(MlirAttr::Text(text)) => text.as_str(),
            _ => "",
        };
        let (shardings, own) = (format!("{}{}", text("in_shardings"), text("out_shardings")), text("manual_axes"));
        let used = self.functions.meshes.iter().filter(|(name, _)| shardings.contains(&format!("@{name}")));
        for (axis, size) in used.flat_map(|(_, axes)| axes) {
            if *size > 1 && !own.contains(&format!("\"{axis}\"")) {
                let told = format!("the axis `{axis}` of the mesh is left to XLA's partitioner");
                return Err(error_at(op, Code::HloUnsupported, told));
            }
        }
        Ok(())
    }
}

/// Axes of a mesh.
///
/// # Errors
/// `Code::HloUnsupported` for a mesh that lists its devices.
pub(super) fn read_mesh(name: &str, text: &str) -> Result<Vec<(String, u64)>> {
    let told = || format!("the mesh `{name}` lists its devices; read are meshes in the order of partitions");
    parse_mesh(text).ok_or_else(|| Error::user(Code::HloUnsupported, told()))
}
