//! Throughput of multiply-adds on registers: the maximum floating-point work of a thread.
use super::machine::min_call_seconds;
use crate::diag::Result;
use crate::kernel::{Buffer, BufferLocation, Expr, Index, Kernel, LoopKind, Program, Step, Stmt};
use crate::scalar::ScalarOp;
use crate::target::Target;
use crate::tensor::{DType, TensorInfo};

/// Number of multiply-adds in flight: enough for two pipes of latency five.
const ACCUMULATORS: u64 = 12;
/// Iterations of a chunk.
const ROUNDS: u64 = 10_000;
/// Number of chunks of each thread.
const CHUNKS: u64 = 4;

/// Measures the maximum f32 GFLOP/s of one thread with the vectors that code for `target` uses.
///
/// # Errors
/// Errors of compiling and loading.
pub fn gflops_of_one_thread(target: &Target) -> Result<f64> {
    measure_gflops(target, target.lanes(4), 1)
}

/// Measures the f32 GFLOP/s of `threads` threads on vectors of `lanes` elements.
///
/// # Errors
/// Errors of compiling and loading.
pub fn measure_gflops(target: &Target, lanes: u64, threads: usize) -> Result<f64> {
    let program = program(lanes, threads);
    let flops = program.flops;
    Ok(flops as f64 / min_call_seconds(program, target, &[], threads)? / 1e9)
}

/// The kernel `acc[i] = acc[i]·x + y`, which finally stores the accumulators so that they are not optimized away.
pub(super) fn program(lanes: u64, threads: usize) -> Program {
    let chunks = CHUNKS * threads as u64;
    let elements = ACCUMULATORS * lanes;
    let flops = 2 * elements * ROUNDS * chunks;
    let mut p = Program { name: "fma".into(), flops, ..Program::default() };
    let total = elements * chunks;
    p.results.push(TensorInfo {
        name: "r".into(),
        called: None,
        field: "r".into(),
        dtype: DType::F32,
        dims: vec![total],
    });
    let out = p.buffers.push(Buffer { dtype: DType::F32, elements: total, place: BufferLocation::Result(0) });
    let mut k = Kernel { label: "fma".into(), flops, ..Kernel::default() };
    let (chunk, round, lane) = (k.add_var(chunks), k.add_var(ROUNDS), k.add_var(lanes));
    let acc = k.add_reg(DType::F32, lanes, ACCUMULATORS);
    let half = k.add_expr(Expr::Const(DType::F32, u64::from(0.5f32.to_bits())));
    let at = |i: u64| Index::constant(i as i64);
    let set = |i, value| Stmt::Set { reg: acc, at: at(i), value };
    let mut body: Vec<Stmt> = (0..ACCUMULATORS).map(|i| set(i, half)).collect();
    let mut inside = Vec::new();
    for i in 0..ACCUMULATORS {
        let old = k.add_expr(Expr::Reg(acc, at(i)));
        let value = k.add_op(ScalarOp::Fma, &[old, half, half], DType::F32);
        inside.push(set(i, value));
    }
    body.push(Stmt::For { var: round, kind: LoopKind::Seq, body: inside });
    for i in 0..ACCUMULATORS {
        let value = k.add_expr(Expr::Reg(acc, at(i)));
        let index = Index::var(chunk).scale(elements as i64).add(&Index::var(lane)).offset((i * lanes) as i64);
        body.push(Stmt::Store { buf: out, index, value });
    }
    k.chunks = Some(chunk);
    k.body = vec![Stmt::For { var: lane, kind: LoopKind::Vector, body }];
    let id = p.kernels.push(k);
    p.steps.push(Step::Launch(id));
    p
}
