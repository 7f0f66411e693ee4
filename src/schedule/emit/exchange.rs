//! Collectives, and the numbers of replicas and partitions: no kernel, but a step between kernels that calls the communicator.
use crate::diag::{Error, Result};
use crate::hlo::attrs::Foreign;
use crate::hlo::groups::{Devices, Joined, is_collective, joined};
use crate::hlo::{Op, Shape};
use crate::kernel::{Call, Called, Exchange, Movement, Step};
use crate::schedule::emit::{Emitter, refuse};
use crate::schedule::family::{Family, Root};
use crate::schedule::plan::recipe::Setup;

/// Exchanges with other ranks.
pub const FAMILY: Family = Family {
    name: "exchange",
    recipe: |_, asked| match asked.op() {
        Op::Foreign(f) if is_collective(&f.opcode) => Ok(Some(Setup::Plain)),
        Op::ReplicaId | Op::PartitionId => Ok(Some(Setup::Plain)),
        _ => Ok(None),
    },
    emit: |s, root, _| s.exchange(root),
};

impl<'a> Emitter<'a> {
    fn exchange(&mut self, Root { id, out, .. }: Root<'_>) -> Result<()> {
        let inst = &self.scope.comp[id];
        let devices = Devices::of(self.module.devices())?;
        let movement = match &inst.op {
            Op::ReplicaId => Movement::Rank { divisor: devices.partitions, modulus: devices.replicas },
            Op::PartitionId => Movement::Rank { divisor: 1, modulus: devices.partitions },
            Op::Foreign(f) => movement(f, devices)?,
            _ => return Err(refuse(self.scope.comp, id, "")),
        };
        let operands = inst.operands.clone();
        let block = |shape: &Shape| shape.as_array().map_or(0, |a| a.bytes());
        let bytes = match (&movement, operands.first()) {
            (Movement::AllToAll(groups), _) => block(&inst.shape) / groups.first().map_or(1, Vec::len) as u64,
            (_, Some(&o)) => block(&self.scope.comp[o].shape),
            (_, None) => block(&inst.shape),
        };
        let number = number(&self.scope.comp.name, &inst.name);
        let to = Called::Ranks(Exchange { movement, number, ranks: devices.count(), bytes });
        let mut args = Vec::new();
        for o in operands {
            args.extend(self.value(o)?.leaves);
        }
        self.steps.push(Step::Call(Box::new(Call { to, args, results: out.leaves.clone() })));
        Ok(())
    }
}

fn movement(f: &Foreign, devices: Devices) -> Result<Movement> {
    Ok(match (f.opcode.as_str(), joined(f, devices)?) {
        ("all-gather", Joined::Groups(groups)) => Movement::AllGather(groups),
        ("all-to-all", Joined::Groups(groups)) => Movement::AllToAll(groups),
        ("collective-broadcast", Joined::Groups(groups)) => Movement::Broadcast(groups),
        ("collective-permute", Joined::Pairs(pairs)) => Movement::Permute(pairs),
        (other, _) => return Err(Error::internal("schedule", format!("`{other}` is no move of blocks"))),
    })
}

/// The same on all ranks, whatever their instruction sets: names are those of the module (FNV-1a, 32 bits).
fn number(comp: &str, inst: &str) -> u32 {
    let name = comp.bytes().chain(*b"/").chain(inst.bytes());
    name.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
