//! JAX's callbacks that each device makes with its own shards: `jax.debug.callback(..., partitioned=True)`.
//!
//! A shard is handed on as it is, and so is an array that all devices have as a whole because the program says so. Other whole arrays
//! are refused: they are whole here because an operation gathered its operands, and the caller expects a part.
use super::Shard;
use crate::diag::{Code, Diagnostic, Result};
use crate::hlo::InstId;
use crate::hlo::stablehlo::converter::Converter;
use crate::hlo::stablehlo::tree::Operation;
use crate::scalar::ScalarOp;
use std::collections::HashSet;

/// Custom call of a partitioned callback.
const TARGET: &str = "xla_ffi_partitioned_python_cpu_callback";

/// Whether an operation is a callback that each device makes with its own shards.
pub(super) fn is_partitioned_callback(op: &Operation) -> bool {
    op.name == "stablehlo.custom_call" && super::target(op) == Some(TARGET)
}

impl Converter<'_, '_> {
    /// Operands of a partitioned callback: shards, without partial sums, and arrays that every device has as a whole.
    ///
    /// # Errors
    /// `Code::HloUnsupported` for callbacks that return arrays, and for operands that an earlier operation, a loop or a branch has gathered.
    pub(super) fn partitioned_callback_operands(&mut self, op: &Operation, operands: &[InstId]) -> Result<Vec<InstId>> {
        if op.types.iter().any(|shape| shape.as_array().is_some()) && !self.shards.is_empty() {
            return Err(refusal(op, "a partitioned callback returns an array"));
        }
        let mut made = Vec::with_capacity(operands.len());
        for &id in operands {
            if self.shard(id).is_none() && self.is_gathered(id) {
                return Err(refusal(
                    op,
                    "a partitioned callback gets an array of which each device has the whole, gathered from its shards",
                ));
            }
            made.push(self.complete_sums(id));
        }
        Ok(made)
    }

    /// Whether a whole array may be computed from shards that an operation, or a computation around this one, has gathered.
    fn is_gathered(&mut self, id: InstId) -> bool {
        if self.shards.is_empty() || self.builder().rank(id) == 0 {
            return false;
        }
        let depth = self.builder().nesting_depth();
        if self.shards.keys().any(|&(outer, _)| outer < depth) {
            return true;
        }
        let (mut seen, mut open) = (HashSet::new(), vec![id]);
        while let Some(id) = open.pop() {
            if self.gathered.contains(&(depth, id)) {
                return true;
            }
            if seen.insert(id) {
                open.extend(&self.builder().current_computation()[id].operands);
            }
        }
        false
    }

    /// A shard whose partial sums are added up.
    pub(super) fn complete_sums(&mut self, id: InstId) -> InstId {
        let Some(Shard { mut sharding, whole }) = self.shard(id).filter(|own| own.sharding.partial_sums > 1) else {
            return id;
        };
        let sum = self.all_reduce(id, ScalarOp::Add, &sharding.partial_sum_groups());
        sharding.partial_sums = 1;
        if sharding.parts.iter().any(|&parts| parts > 1) {
            self.mark_shard(sum, Shard { sharding, whole });
        }
        sum
    }
}

fn refusal(op: &Operation, message: &str) -> crate::diag::Error {
    let mut d = Diagnostic::new(Code::HloUnsupported, message)
        .help("call it inside of `shard_map`, or without `partitioned=True`");
    d.place.op = Some(op.name.clone());
    d.place.line = op.place;
    d.into()
}
