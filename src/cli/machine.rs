//! What this machine can do at most, measured by compiled code of our own.
use super::native::Session;
use crate::codegen::{self, Launches};
use crate::compile::Built;
use crate::diag::Result;
use crate::hlo;
use crate::kernel::{Buffer, Expr, Index, Kernel, LoopKind, Place, Program, Step, Stmt};
use crate::scalar::ScalarOp;
use crate::target::Target;
use crate::tensor::{DType, TensorInfo};
use std::time::{Duration, Instant};

/// Multiply-adds in flight: enough for two pipes of latency five.
const ACCUMULATORS: u64 = 12;
/// Rounds of a call.
const ROUNDS: u64 = 20_000;
/// Calls; the best of them counts, so that a neighbour on the machine does not lower the figure.
const CALLS: usize = 40;

/// The most f32 GFLOP/s of one thread: multiply-adds of registers. Errors: those of compiling and loading.
pub fn fma_gflops(target: &Target) -> Result<f64> {
    let program = fma_program(target);
    let flops = 2 * ACCUMULATORS * ROUNDS * target.lanes(4);
    let object = codegen::compile(&program, target, Launches::Direct)?;
    let built = Built { module: hlo::Builder::new("fma").module().clone(), program, object };
    let mut session = Session::new(&built, target, &[], 1)?;
    let mut least = Duration::MAX;
    for _ in 0..CALLS {
        let start = Instant::now();
        session.call()?;
        least = least.min(start.elapsed());
    }
    Ok(flops as f64 / least.as_secs_f64() / 1e9)
}

/// `acc[i] = acc[i]·x + y`, then the accumulators are stored so that they are needed.
fn fma_program(target: &Target) -> Program {
    let lanes = target.lanes(4);
    let mut p = Program { name: "fma".into(), ..Program::default() };
    let elements = ACCUMULATORS * lanes;
    p.results.push(TensorInfo { name: "r".into(), field: "r".into(), dtype: DType::F32, dims: vec![elements] });
    let out = p.buffers.push(Buffer { dtype: DType::F32, elements, place: Place::Result(0) });
    let mut k = Kernel { label: "fma".into(), ..Kernel::default() };
    let (round, lane) = (k.var(ROUNDS), k.var(lanes));
    let acc = k.reg(DType::F32, lanes, ACCUMULATORS);
    let half = k.expr(Expr::Const(DType::F32, u64::from(0.5f32.to_bits())));
    let at = |i: u64| Index::constant(i as i64);
    let set = |i, value| Stmt::Set { reg: acc, at: at(i), value };
    let mut body: Vec<Stmt> = (0..ACCUMULATORS).map(|i| set(i, half)).collect();
    let mut inside = Vec::new();
    for i in 0..ACCUMULATORS {
        let old = k.expr(Expr::Reg(acc, at(i)));
        let value = k.op(ScalarOp::Fma, &[old, half, half], DType::F32);
        inside.push(set(i, value));
    }
    body.push(Stmt::For { var: round, kind: LoopKind::Seq, body: inside });
    for i in 0..ACCUMULATORS {
        let value = k.expr(Expr::Reg(acc, at(i)));
        body.push(Stmt::Store { buf: out, index: Index::var(lane).offset((i * lanes) as i64), value });
    }
    k.body = vec![Stmt::For { var: lane, kind: LoopKind::Vector, body }];
    let id = p.kernels.push(k);
    p.steps.push(Step::Launch(id));
    p
}
