//! Estimates of a call's work for given sizes, with loop limits computed as the call itself computes them.
use super::work::LoopLimits;
use super::{BufId, BufferLocation, Kernel, KernelId, Program, Step, eval};
use crate::diag::Result;
use crate::tensor::{DType, Tensor, TensorInfo};
use crate::util::id_vec::IdVec;

/// Assumed number of iterations of loops whose iteration count is unknown.
const ROUNDS: u64 = 8;

/// Upper limit of statements that computing limits may run.
const MOST_STATEMENTS: u64 = 1 << 20;

impl Program {
    /// Estimates the operations of a call on one thread and on two, for sizes `numbers` (the trailing scalar `s32` arguments), each at most
    /// its value in `most`.
    ///
    /// # Errors
    /// Internal, if the steps that compute limits can't be evaluated.
    pub fn work_at_sizes(&self, numbers: &[u64], most: &[u64]) -> Result<[u64; 2]> {
        let limits = self.limits_of_call(numbers)?;
        let alone = |size: usize| {
            let own: Vec<u64> = (0..numbers.len()).map(|i| if i == size { numbers[i] } else { most[i] }).collect();
            let limits = if own == numbers { limits.clone() } else { self.limits_of_call(&own)? };
            Ok(limits.map_or(Vec::new(), |(_, values)| values))
        };
        let apart = (0..numbers.len()).map(alone).collect::<Result<_>>()?;
        let held = LoopLimits { limits, apart };
        Ok(self.work_of(&self.steps, &held))
    }

    fn work_of(&self, steps: &[Step], held: &LoopLimits) -> [u64; 2] {
        let lists = |lists: &[Vec<Step>]| sum(lists.iter().map(|list| self.work_of(list, held)), 1);
        let one = |step: &Step| match step {
            Step::Launch(id) => self.kernels[*id].work_at_limits(self, held),
            Step::Call(_) => [0, 0],
            Step::While { cond, body, .. } => {
                sum([cond, body].into_iter().map(|list| self.work_of(list, held)), ROUNDS)
            }
            Step::Branch { branches: all, .. } | Step::Together(all) => lists(all),
        };
        sum(steps.iter().map(one), 1)
    }

    /// The limits of loops in a call whose size arguments are `numbers`; `None` if nothing limits them.
    fn limits_of_call(&self, numbers: &[u64]) -> Result<Option<(BufId, Vec<i64>)>> {
        let Some((id, buf)) = self.steps.first().and_then(|step| self.computes_limits(step)) else { return Ok(None) };
        let is_number = |info: &TensorInfo| info.dtype == DType::S32 && info.dims.is_empty();
        let first = self.args.len().saturating_sub(numbers.len());
        let infos: Vec<TensorInfo> = self.args.iter().map(|a| without_elements(a, is_number(a))).collect();
        let arg = |(i, info): (usize, &TensorInfo)| {
            let number = i.checked_sub(first).and_then(|i| numbers.get(i)).copied().unwrap_or(0);
            match is_number(info) {
                true => Tensor::scalar(i32::try_from(number).unwrap_or(i32::MAX)),
                false => Tensor::new(info.dtype, info.dims.clone(), Vec::new()),
            }
        };
        let args: Vec<Tensor> = infos.iter().enumerate().map(arg).collect();
        let mut buffers = self.buffers.clone();
        buffers[buf].place = BufferLocation::Result(0);
        let dims = vec![buffers[buf].elements];
        let limits = TensorInfo { dims, dtype: DType::S32, name: String::new(), called: None, field: String::new() };
        let mut kernels = IdVec::new();
        let id = kernels.push(self.kernels[id].clone());
        let alone = Program {
            args: infos,
            results: vec![limits],
            buffers,
            kernels,
            steps: vec![Step::Launch(id)],
            ..Program::default()
        };
        let values = eval::evaluate(&alone, &args, MOST_STATEMENTS)?;
        Ok(values.first().and_then(Tensor::to_i64s).map(|values| (buf, values)))
    }

    /// The kernel that a step launches and the buffer that it writes, if that has the limits of other kernels.
    fn computes_limits(&self, step: &Step) -> Option<(KernelId, BufId)> {
        let Step::Launch(id) = step else { return None };
        let stores = self.kernels[*id].stores();
        let buf = stores.first()?.buf;
        let only = stores.iter().all(|span| span.buf == buf) && self.buffers[buf].dtype == DType::S32;
        let reads = self.kernels[*id].buffers();
        let is_arg = |b: &BufId| {
            *b == buf || matches!(self.buffers[*b].place, BufferLocation::Arg(_)) && self.buffers[*b].elements == 1
        };
        let is_limit = |k: &Kernel| k.limit.is_some_and(|(from, _)| from == buf);
        let is_used = self.kernels.values().any(|k| is_limit(k) || k.buffers().contains(&buf));
        (only && is_used && reads.iter().all(is_arg)).then_some((*id, buf))
    }
}

fn sum(all: impl Iterator<Item = [u64; 2]>, times: u64) -> [u64; 2] {
    let add = |x: [u64; 2], y: [u64; 2]| [0, 1].map(|i| x[i].saturating_add(y[i].saturating_mul(times)));
    all.fold([0, 0], add)
}

/// The description of an argument, without elements if the evaluated steps do not read it.
fn without_elements(info: &TensorInfo, is_read: bool) -> TensorInfo {
    TensorInfo { dims: if is_read { info.dims.clone() } else { vec![0] }, ..info.clone() }
}
