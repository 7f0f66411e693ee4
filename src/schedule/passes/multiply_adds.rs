//! Multiply-adds of quantisations, rounded once: `--quantized fast` lets `x * a + b` be rounded as the target does it fastest.
use crate::kernel::{Expr, ExprId, Kernel, Program};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Depth to which bounds and sums below a rounding are followed.
const DEPTH: usize = 6;

/// Makes multiply-adds of the products and sums that conversions to bytes, or to whole numbers, read.
pub fn fuse_multiply_adds(program: &mut Program) {
    for kernel in program.kernels.values_mut() {
        let operand_of_rounding = |expr: &Expr| match expr {
            Expr::Op(ScalarOp::Convert(DType::U8) | ScalarOp::Floor, args, _) => args.first().copied(),
            _ => None,
        };
        let rounded: Vec<ExprId> = kernel.exprs.values().filter_map(operand_of_rounding).collect();
        for id in rounded {
            fuse_sum(kernel, id, DEPTH);
        }
    }
}

/// Fuses a sum of products below bounds, and the sums that it is added to.
fn fuse_sum(kernel: &mut Kernel, id: ExprId, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let Expr::Op(op, args, DType::F32) = &kernel.exprs[id] else { return };
    match (op, args.as_slice()) {
        (ScalarOp::Minimum | ScalarOp::Maximum, &[x, _]) => fuse_sum(kernel, x, depth),
        (ScalarOp::Add, &[product, rest]) => {
            let Expr::Op(ScalarOp::Multiply, factors, DType::F32) = &kernel.exprs[product] else { return };
            let &[x, y] = factors.as_slice() else { return };
            kernel.exprs[id] = Expr::Op(ScalarOp::Fma, vec![x, y, rest], DType::F32);
            fuse_sum(kernel, rest, depth);
        }
        _ => {}
    }
}
