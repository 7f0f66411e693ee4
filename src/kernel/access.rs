//! Sets of buffers that the steps of a program read and write.
use super::{BufId, Program, Step};
use std::collections::BTreeSet;

/// The buffers that a list of steps reads and writes.
#[derive(Clone, Debug, Default)]
pub struct BufferAccess {
    /// Buffers that are read, those of conditions among them.
    pub read: BTreeSet<BufId>,
    /// Buffers that are written.
    pub written: BTreeSet<BufId>,
}

impl BufferAccess {
    /// Buffers that `steps` read and write; loops and branches count whichever way they may go.
    pub fn of_steps(program: &Program, steps: &[Step]) -> BufferAccess {
        let mut access = BufferAccess::default();
        steps.iter().for_each(|step| access.add(program, step));
        access
    }

    /// Adds the buffers that one step reads and writes.
    pub fn add(&mut self, program: &Program, step: &Step) {
        let mut all = |steps: &[Step]| steps.iter().for_each(|step| self.add(program, step));
        match step {
            Step::Launch(kernel) => {
                let kernel = &program.kernels[*kernel];
                self.read.extend(kernel.loads().map(|span| span.buf));
                self.read.extend(kernel.limit.map(|(buf, _)| buf));
                self.written.extend(kernel.stores().into_iter().map(|span| span.buf));
            }
            Step::Call(call) => {
                self.read.extend(&call.args);
                self.written.extend(&call.results);
            }
            Step::While { cond, pred, body, .. } => {
                all(cond);
                all(body);
                self.read.insert(*pred);
            }
            Step::Branch { selector, branches } => {
                branches.iter().for_each(|branch| all(branch));
                self.read.insert(*selector);
            }
            Step::Together(parts) => parts.iter().for_each(|part| all(part)),
        }
    }

    /// Adds the buffers of `other`.
    pub fn merge(&mut self, other: BufferAccess) {
        self.read.extend(other.read);
        self.written.extend(other.written);
    }

    /// Whether one of the two writes a buffer that the other reads or writes, so that their order matters.
    pub fn conflicts(&self, other: &BufferAccess) -> bool {
        let writes =
            |a: &BufferAccess, b: &BufferAccess| !a.written.is_disjoint(&b.read) || !a.written.is_disjoint(&b.written);
        writes(self, other) || writes(other, self)
    }
}
