//! Custom calls that one device of all makes, as their sharding says: `[<@maximal_mesh, []>]` of a mesh without axes.
//!
//! The call stands in a branch that this device alone takes, and what it returns is broadcast to the others.
use super::partitioned_callback::is_partitioned_callback;
use super::{SHARDING_ATTRIBUTES, braced_items};
use crate::diag::{Code, Result};
use crate::hlo::stablehlo::converter::{Converter, SymbolScope, error_at};
use crate::hlo::stablehlo::tree::{MlirAttr, Operation};
use crate::hlo::{InstId, Shape, symbolic};
use crate::scalar::Direction;
use crate::tensor::{DType, Tensor};

impl<'a> Converter<'a, '_> {
    /// The device that alone makes a custom call; `None` for calls that every device makes.
    ///
    /// # Errors
    /// `Code::HloUnsupported` for shardings that place results on different devices.
    pub(in crate::hlo::stablehlo) fn calling_device(&self, op: &Operation) -> Result<Option<u32>> {
        if op.name != "stablehlo.custom_call" || is_partitioned_callback(op) || self.functions.partition_count() == 1 {
            return Ok(None);
        }
        let Some(MlirAttr::Text(text)) = op.attr(SHARDING_ATTRIBUTES) else { return Ok(None) };
        let devices: Vec<Option<u32>> = if text.contains("<@") {
            let device = |name: &str| self.functions.meshes.get(name.trim().trim_matches('"'))?.only_device();
            let meshes = text.split("<@").skip(1).filter_map(|rest| rest.split([',', '>']).next());
            meshes.map(device).collect()
        } else {
            let items = text
                .trim()
                .strip_prefix('{')
                .and_then(|list| list.strip_suffix('}'))
                .filter(|list| list.starts_with('{'));
            let device = |item: &String| item.strip_prefix("{maximal device=")?.strip_suffix('}')?.trim().parse().ok();
            items.map_or_else(|| vec![text.trim().to_string()], braced_items).iter().map(device).collect()
        };
        match devices[..] {
            [first, ref rest @ ..] if rest.iter().all(|other| *other == first) => Ok(first),
            [] => Ok(None),
            _ => Err(error_at(
                op,
                Code::HloUnsupported,
                format!("the results of a custom call are on different devices: `{text}`"),
            )),
        }
    }

    /// Converts a custom call that `device` makes alone.
    ///
    /// # Errors
    /// `Code::HloUnsupported` in modules of several replicas.
    pub(in crate::hlo::stablehlo) fn convert_on_one_device(
        &mut self,
        op: &'a Operation,
        operands: Vec<InstId>,
        device: u32,
        scope: &SymbolScope,
    ) -> Result<Vec<InstId>> {
        if self.functions.replica_count() > 1 {
            let told = "a custom call with an effect on one of several partitions, in several replicas";
            return Err(error_at(op, Code::HloUnsupported, told));
        }
        let inside = SymbolScope { open: scope.open, ..SymbolScope::default() };
        let argument = self.builder().tuple(&operands);
        let shape = self.builder().shape(argument).clone();
        let mut branch = |is_device: bool| -> Result<_> {
            self.begin_computation(if is_device { "call" } else { "no_call" });
            let param = self.builder().parameter(shape.clone());
            let results = if is_device {
                let args = self.parts(param);
                self.single_instruction(op, args, &[], &inside)?
            } else {
                op.types.iter().map(|shape| self.zeros(shape)).collect()
            };
            let b = self.builder();
            let root = b.tuple(&results);
            Ok(b.end_computation(root))
        };
        let branches = vec![branch(true)?, branch(false)?];
        let b = self.builder();
        let own = b.push(symbolic::Op::PartitionId, &[], symbolic::Shape::array(DType::U32, vec![]));
        let wanted = b.constant(Tensor::scalar(device));
        let is_device = b.compare(Direction::Eq, own, wanted);
        let made = symbolic::Shape::Tuple(op.types.iter().map(Shape::to_symbolic).collect());
        let all = b.push(symbolic::Op::Conditional(branches), &[is_device, argument, argument], made);
        let parts = self.parts(all);
        Ok(parts.into_iter().map(|part| self.broadcast_from(part, device)).collect())
    }

    /// An array of zeros, or a token.
    fn zeros(&mut self, shape: &Shape) -> InstId {
        let b = self.builder();
        match shape.as_array() {
            Some(array) => b.constant(Tensor::new(array.dtype, array.dims.clone(), vec![0; array.bytes() as usize])),
            None => b.add_inst(symbolic::Op::AfterAll, &[]),
        }
    }
}
