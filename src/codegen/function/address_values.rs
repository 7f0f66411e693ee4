//! Instructions that compute addresses, emitted once for all their uses: LLVM would merge equal ones, but reading them takes it time.
use super::FunctionEmitter;
use crate::tensor::DType;
use std::collections::HashMap;

/// The results of address instructions that are defined on every path to the point of emission.
#[derive(Default)]
pub(super) struct AddressValues {
    /// The name of the result of each instruction, by the instruction's text.
    names: HashMap<String, String>,
    /// The texts in order of emission, so that those of a branch can be forgotten at its end.
    order: Vec<String>,
}

impl AddressValues {
    /// Forgets all instructions but the first `count`.
    fn truncate(&mut self, count: usize) {
        for text in self.order.drain(count..) {
            self.names.remove(&text);
        }
    }
}

impl FunctionEmitter<'_> {
    /// Emits the scalar integer or address instruction `rhs`, which has no effects and reads no memory, and returns the name of its result:
    /// that of an earlier equal instruction where there is one.
    pub(super) fn address_instruction(&mut self, rhs: String) -> String {
        if let Some(name) = self.addresses.names.get(&rhs) {
            return name.clone();
        }
        let name = self.push_instruction(&rhs, DType::S64, 1).text;
        self.addresses.names.insert(rhs.clone(), name.clone());
        self.addresses.order.push(rhs);
        name
    }

    /// Runs `emit`, which emits blocks that the code behind them may be reached without, such as the body of a condition: what they compute
    /// is not used behind them.
    pub(in crate::codegen) fn emit_branch<T>(&mut self, emit: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.addresses.order.len();
        let result = emit(self);
        self.addresses.truncate(before);
        result
    }
}
