//! Bandwidth of caches and memory, measured by threads that repeatedly read a region each.
use super::machine::min_call_seconds;
use crate::diag::Result;
use crate::kernel::{Buffer, BufferLocation, Expr, Index, Kernel, LoopKind, Program, Step, Stmt};
use crate::scalar::ScalarOp;
use crate::target::Target;
use crate::tensor::{DType, Tensor, TensorInfo};

/// Number of vectors in a step, each with its own register.
const VECTORS: u64 = 8;
/// Minimum number of bytes that a call reads, so that its overhead is negligible.
const LEAST_BYTES: u64 = 64 << 20;

/// Measures the GB/s of `threads` threads that read `bytes` bytes each, repeatedly.
///
/// # Errors
/// Errors of compiling and loading.
pub fn measure_gbs(target: &Target, bytes: u64, threads: usize) -> Result<f64> {
    let rounds = LEAST_BYTES.div_ceil(bytes.max(1)).max(1);
    let program = program(target, bytes, rounds, threads);
    let arg = &program.args[0];
    // written once, because untouched pages would all map to one page of zeros
    let values = vec![1u8; arg.bytes() as usize];
    let arg = Tensor::new(arg.dtype, arg.dims.clone(), values);
    let total = arg.bytes.len() as u64 * rounds;
    Ok(total as f64 / min_call_seconds(program, target, &[arg], threads)? / 1e9)
}

/// The kernel `acc[u] ^= x[…]` over the region of each thread. Exclusive or has more execution ports than loads have.
pub(super) fn program(target: &Target, bytes: u64, rounds: u64, threads: usize) -> Program {
    let lanes = target.lanes(4);
    let step = VECTORS * lanes;
    let steps = (bytes / 4 / step).max(1);
    let region = steps * step;
    let threads = threads as u64;
    let mut p = Program { name: "read".into(), ..Program::default() };
    let info = |name: &str, n| TensorInfo {
        name: name.into(),
        called: None,
        field: name.into(),
        dtype: DType::U32,
        dims: vec![n],
    };
    p.args.push(info("x", threads * region));
    p.results.push(info("r", threads * step));
    let mut buffer = |elements, place| p.buffers.push(Buffer { dtype: DType::U32, elements, place });
    let from = buffer(threads * region, BufferLocation::Arg(0));
    let to = buffer(threads * step, BufferLocation::Result(0));
    let mut k = Kernel { label: "read".into(), flops: threads * region * rounds, ..Kernel::default() };
    let (chunk, round, block, lane) = (k.add_var(threads), k.add_var(rounds), k.add_var(steps), k.add_var(lanes));
    let acc = k.add_reg(DType::U32, lanes, VECTORS);
    let zero = k.add_expr(Expr::Const(DType::U32, 0));
    let at = |u: u64| Index::constant(u as i64);
    let mut body: Vec<Stmt> = (0..VECTORS).map(|u| Stmt::Set { reg: acc, at: at(u), value: zero }).collect();
    let first = Index::var(chunk).scale(region as i64).add(&Index::var(block).scale(step as i64));
    let mut inside = Vec::new();
    for u in 0..VECTORS {
        let index = first.add(&Index::var(lane)).offset((u * lanes) as i64);
        let (old, x) = (k.add_expr(Expr::Reg(acc, at(u))), k.add_expr(Expr::Load(from, index)));
        let value = k.add_op(ScalarOp::Xor, &[old, x], DType::U32);
        inside.push(Stmt::Set { reg: acc, at: at(u), value });
    }
    let blocks = Stmt::For { var: block, kind: LoopKind::Seq, body: inside };
    body.push(Stmt::For { var: round, kind: LoopKind::Seq, body: vec![blocks] });
    for u in 0..VECTORS {
        let value = k.add_expr(Expr::Reg(acc, at(u)));
        let index = Index::var(chunk).scale(step as i64).add(&Index::var(lane)).offset((u * lanes) as i64);
        body.push(Stmt::Store { buf: to, index, value });
    }
    k.chunks = Some(chunk);
    k.body = vec![Stmt::For { var: lane, kind: LoopKind::Vector, body }];
    let id = p.kernels.push(k);
    p.steps.push(Step::Launch(id));
    p
}
