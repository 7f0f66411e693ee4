//! Lifetimes of buffers: the launches of a call that access each buffer, derived from the steps of a program.
use crate::kernel::{BufId, Program, Step};
use crate::util::id_vec::Id;

/// Launches in the order of a call, and the lifetimes of buffers.
pub struct BufferLifetimes {
    /// Kernels in the order of their launches; those in loops and branches appear once.
    pub launches: Vec<u32>,
    /// By buffer: positions in `launches` of the first and last launch that accesses it.
    pub of: Vec<Option<(u32, u32)>>,
}

impl BufferLifetimes {
    /// Computes the lifetimes of the buffers of `program`. A buffer that is live at the beginning of a loop lives until its end.
    pub fn new(program: &Program) -> BufferLifetimes {
        let mut lives = BufferLifetimes { launches: Vec::new(), of: vec![None; program.buffers.len()] };
        lives.steps(program, &program.steps);
        lives
    }

    fn steps(&mut self, program: &Program, all: &[Step]) {
        for step in all {
            match step {
                Step::Launch(kernel) => {
                    for buffer in program.kernels[*kernel].buffers() {
                        self.touch(buffer, self.launches.len());
                    }
                    self.launches.push(kernel.0);
                }
                Step::Call(call) => {
                    let at = self.launches.len().saturating_sub(1);
                    call.buffers().for_each(|buffer| self.touch(buffer, at));
                }
                Step::While { cond, pred, body, .. } => {
                    let start = self.launches.len();
                    self.steps(program, cond);
                    self.steps(program, body);
                    self.close(start, *pred);
                }
                Step::Branch { selector, branches } => {
                    let start = self.launches.len();
                    branches.iter().for_each(|branch| self.steps(program, branch));
                    self.close(start, *selector);
                }
                Step::Together(parts) => parts.iter().for_each(|part| self.steps(program, part)),
            }
        }
    }

    fn touch(&mut self, buffer: BufId, at: usize) {
        let at = at as u32;
        let life = self.of[buffer.index()].get_or_insert((at, at));
        *life = (life.0.min(at), life.1.max(at));
    }

    fn close(&mut self, start: usize, asked: BufId) {
        let Some(end) = self.launches.len().checked_sub(1).filter(|&end| end >= start) else { return };
        self.touch(asked, end);
        for life in self.of.iter_mut().flatten() {
            if (life.0 as usize) < start && life.1 as usize >= start {
                life.1 = end as u32;
            }
        }
    }
}
