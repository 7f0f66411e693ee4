//! Widens the bytes of products to 16 bits for machines whose instructions add products of those: what makes the left side writes it
//! so, and the right side is a constant.
use crate::hlo::{ArrayShape, Computation, Inst, InstId, Literal, Module, Op, Shape};
use crate::scalar::ScalarOp;
use crate::target::Target;
use crate::tensor::{DType, Tensor};

/// Number of 16-bit integers in a 32-bit word.
const TERMS: u64 = 2;
/// Number of bytes in a 32-bit word.
const BYTE_TERMS: u64 = 4;

/// Rewrites products of bytes as products of 16-bit integers; `None` if there are none, or if the machine multiplies bytes as fast.
pub fn widen_byte_products(module: &Module, target: &Target) -> Option<Module> {
    target.short_dot?;
    let mut out = None;
    for (id, comp) in module.comps.iter() {
        for product in comp.post_order() {
            if is_better_in_shorts(comp, product, target) {
                widen(&mut out.get_or_insert_with(|| module.clone()).comps[id], product);
            }
        }
    }
    out
}

/// Whether a product of bytes by constant bytes is faster in 16-bit integers: its terms are adjacent and come in pairs, and the machine
/// does not multiply them in words of four bytes.
fn is_better_in_shorts(comp: &Computation, product: InstId, target: &Target) -> bool {
    let [left, right] = comp[product].operands[..] else { return false };
    let (Shape::Array(left), Shape::Array(right_shape)) = (&comp[left].shape, &comp[right].shape) else { return false };
    let is_of_bytes = |shape: &ArrayShape| matches!(shape.dtype, DType::S8 | DType::U8);
    let run = match &comp[product].op {
        Op::Dot(d) => d.lhs_contracting.iter().find(|&&axis| axis + 1 == left.rank()).map(|&axis| left.dims[axis]),
        Op::Convolution(d) if d.input_feature + 1 == left.rank() && d.batch_group_count == 1 => {
            Some(left.dims[d.input_feature] / d.feature_group_count.max(1))
        }
        _ => None,
    };
    let fits = |terms: u64| run.is_some_and(|run| run > 0 && run.is_multiple_of(terms));
    matches!(&comp[product].shape, Shape::Array(sums) if sums.dtype == DType::S32)
        && is_of_bytes(left)
        && is_of_bytes(right_shape)
        && matches!(comp[right].op, Op::Constant(Literal::Array(_)))
        && fits(TERMS)
        && !(target.byte_dot.is_some() && fits(BYTE_TERMS))
}

fn widen(comp: &mut Computation, product: InstId) {
    let [left, right] = comp[product].operands[..] else { return };
    let wide = |id: InstId| Shape::Array(ArrayShape::new(DType::S16, comp.array_shape(id).dims.clone()));
    let (left_shape, right_shape) = (wide(left), wide(right));
    let Op::Constant(Literal::Array(bytes)) = &comp[right].op else { return };
    let numbers: Vec<u8> = (0..bytes.len())
        .flat_map(|i| i16::try_from(bytes.get_i64(i).unwrap_or(0)).unwrap_or(0).to_le_bytes())
        .collect();
    let numbers = Literal::Array(Tensor::new(DType::S16, bytes.dims.clone(), numbers));
    let origin = comp[product].clone();
    let mut add =
        |op: Op, operands: Vec<InstId>, shape: Shape| comp.insts.push(Inst { op, operands, shape, ..origin.clone() });
    let left = add(Op::Elementwise(ScalarOp::Convert(DType::S16)), vec![left], left_shape);
    let right = add(Op::Constant(numbers), vec![], right_shape);
    comp.insts[product].operands = vec![left, right];
}
