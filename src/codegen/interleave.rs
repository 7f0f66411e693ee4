//! Words that are put together of bytes of several vectors: by one permutation in the place of conversions and shifts.
use super::function::FunctionEmitter;
use super::value::{Val, value_type};
use crate::diag::Result;
use crate::kernel::{Expr, ExprId, Kernel};
use crate::scalar::ScalarOp;
use crate::target::IsaLevel;
use crate::tensor::DType;

/// Number of bytes of a word.
const BYTES: usize = 4;

/// The operands of `a | b << 8 | c << 16 | d << 24` of numbers that are widened to 32 bits: at least two, the others `None`.
pub fn find_bytes(kernel: &Kernel, op: ScalarOp, args: &[ExprId]) -> Option<[Option<ExprId>; BYTES]> {
    let (ScalarOp::Or, &[a, b]) = (op, args) else { return None };
    let mut bytes = [None; BYTES];
    let mut rest = vec![a, b];
    while let Some(part) = rest.pop() {
        match &kernel.exprs[part] {
            Expr::Op(ScalarOp::Or, args, DType::U32) => rest.extend(args),
            _ => {
                let (place, byte) = shifted_byte(kernel, part)?;
                if bytes[place].replace(byte).is_some() {
                    return None;
                }
            }
        }
    }
    Some(bytes)
}

/// The place in a word and the byte of `byte << 8 * place`.
fn shifted_byte(kernel: &Kernel, id: ExprId) -> Option<(usize, ExprId)> {
    let Expr::Op(op, args, DType::U32) = &kernel.exprs[id] else { return None };
    let (place, widened) = match (op, args.as_slice()) {
        (ScalarOp::ShiftLeft, &[x, by]) => match kernel.exprs[by] {
            Expr::Const(DType::U32, bits) if bits.is_multiple_of(8) && bits < 32 => (bits as usize / 8, x),
            _ => return None,
        },
        _ => (0, id),
    };
    let Expr::Op(ScalarOp::Convert(DType::U32), args, DType::U32) = &kernel.exprs[widened] else { return None };
    let &[byte] = args.as_slice() else { return None };
    Some((place, byte))
}

/// Emits the words of vectors of unsigned bytes; `None` for other types, and where the target has no permutation that is worth it.
pub fn emit_words(f: &mut FunctionEmitter, bytes: &[Option<ExprId>; BYTES]) -> Result<Option<Val>> {
    if f.target.level != IsaLevel::Avx512 {
        return Ok(None);
    }
    let mut parts = Vec::with_capacity(BYTES);
    for byte in bytes {
        parts.push(byte.map(|byte| f.eval(byte)).transpose()?);
    }
    let lanes = parts.iter().flatten().map(|part| part.lanes).max().unwrap_or(1);
    if !matches!(lanes, 4 | 8 | 16)
        || !parts.iter().flatten().all(|part| part.lanes == lanes && part.dtype == DType::U8)
    {
        return Ok(None);
    }
    let zero = Val { text: "zeroinitializer".to_string(), dtype: DType::U8, lanes };
    let part = |i: usize| parts[i].as_ref().unwrap_or(&zero);
    let low = f.concat_lanes(part(0), part(1));
    let high = f.concat_lanes(part(2), part(3));
    let all = f.concat_lanes(&low, &high);
    let picks: Vec<u64> = (0..lanes).flat_map(|lane| (0..BYTES as u64).map(move |part| part * lanes + lane)).collect();
    let bytes = f.shuffle(&all, &picks);
    let cast = format!("bitcast {} {} to {}", bytes.ty(), bytes.text, value_type(DType::U32, lanes));
    Ok(Some(f.push_instruction(&cast, DType::U32, lanes)))
}
