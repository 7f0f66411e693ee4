//! Collectives, and the numbers of replicas and partitions: no kernel, but a step between kernels that calls the communicator.
use crate::diag::Error;
use crate::hlo::Shape;
use crate::hlo::attrs::ForeignOp;
use crate::hlo::groups::{CollectiveGroups, Devices, is_collective, participating_ranks};
use crate::kernel::{CallTarget, Collective, Exchange};
use crate::schedule::loops::prelude::*;

/// The family of exchanges with other ranks.
pub const FAMILY: Family = Family {
    name: "exchange",
    recipe: |_, request| match request.op() {
        Op::Foreign(f) if is_collective(&f.opcode) => Ok(Some(RecipeSetup::Plain)),
        Op::ReplicaId | Op::PartitionId => Ok(Some(RecipeSetup::Plain)),
        _ => Ok(None),
    },
    emit: |s, root, _| s.emit_exchange(root),
};

impl<'a> Emitter<'a> {
    fn emit_exchange(&mut self, KernelRoot { id, out, .. }: KernelRoot<'_>) -> Result<()> {
        let (comp, module) = (self.scope.comp, self.module);
        let inst = &comp[id];
        let devices = Devices::new(module.devices())?;
        let movement = match &inst.op {
            Op::ReplicaId => Collective::Rank { divisor: devices.partitions, modulus: devices.replicas },
            Op::PartitionId => Collective::Rank { divisor: 1, modulus: devices.partitions },
            Op::Foreign(f) => block_movement(f, devices)?,
            _ => return Err(unsupported_error(comp, id, "")),
        };
        let operands = &inst.operands;
        let block = |shape: &Shape| shape.as_array().map_or(0, |a| a.bytes());
        let bytes = match (&movement, operands.first()) {
            (Collective::AllToAll(groups), _) => block(&inst.shape) / groups.first().map_or(1, Vec::len) as u64,
            (_, Some(&o)) => block(&comp[o].shape),
            (_, None) => block(&inst.shape),
        };
        let number = collective_number(&comp.name, &inst.name);
        let to = CallTarget::Ranks(Exchange { movement, number, ranks: devices.count(), bytes });
        self.emit_call(to, operands, out)
    }
}

fn block_movement(f: &ForeignOp, devices: Devices) -> Result<Collective> {
    Ok(match (f.opcode.as_str(), participating_ranks(f, devices)?) {
        ("all-gather", CollectiveGroups::Groups(groups)) => Collective::AllGather(groups),
        ("all-to-all", CollectiveGroups::Groups(groups)) => Collective::AllToAll(groups),
        ("collective-broadcast", CollectiveGroups::Groups(groups)) => Collective::Broadcast(groups),
        ("collective-permute", CollectiveGroups::Pairs(pairs)) => Collective::Permute(pairs),
        (other, _) => return Err(Error::internal("schedule", format!("`{other}` is no move of blocks"))),
    })
}

/// Number that identifies a collective, equal on all ranks whatever their instruction sets: a hash of names in the module (FNV-1a, 32
/// bits).
fn collective_number(comp: &str, inst: &str) -> u32 {
    let name = comp.bytes().chain(*b"/").chain(inst.bytes());
    name.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
