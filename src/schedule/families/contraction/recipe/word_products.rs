//! Products of contractions whose terms an instruction adds by the word: two of bfloat16 or 16 bits, four of a byte.
use crate::kernel::ExprId;
use crate::target::DotInstruction;
use crate::tensor::DType;

/// The use of a dot-product instruction for a contraction: which side is which operand, and the correction for unsigned bytes.
///
/// An instruction for bytes takes each operand with or without a sign. The right side is a constant, so it is the operand that has its sign,
/// and the left side is made fit: flipping the top bit of each byte adds 128 to a signed one, or takes 128 from one without a sign. What that
/// adds to a sum is the number times the sum of the column of the right side, which is known: [`WordProducts::column_correction`] takes it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WordProducts {
    /// The dot-product instruction.
    pub instruction: DotInstruction,
    /// Whether the left side is the second operand of the instruction.
    is_left_second: bool,
    /// Constant that flipping the top bit adds to each element of the left side: 0 (no flip), 128 or -128.
    added: i32,
}

impl WordProducts {
    /// Word products of pairs of terms: bfloat16, or integers of 16 bits.
    pub fn of_pairs(instruction: DotInstruction) -> WordProducts {
        WordProducts { instruction, is_left_second: false, added: 0 }
    }

    /// Word products of four 8-bit integers, by `instruction` or its counterpart for the other signedness; `None` for other types.
    pub fn of_byte_operands(instruction: DotInstruction, left: DType, right: DType) -> Option<WordProducts> {
        let is_signed = |dtype: DType| match dtype {
            DType::S8 => Some(true),
            DType::U8 => Some(false),
            _ => None,
        };
        let (left, right) = (is_signed(left)?, is_signed(right)?);
        let (instruction, is_left_second, takes_signed) = match (instruction, right) {
            (DotInstruction::Vpdpbusd, true) => (instruction, false, false),
            (DotInstruction::Vpdpbusd, false) => (instruction, true, true),
            (DotInstruction::Sdot | DotInstruction::Udot, true) => (DotInstruction::Sdot, false, true),
            (DotInstruction::Sdot | DotInstruction::Udot, false) => (DotInstruction::Udot, false, false),
            _ => return None,
        };
        let added = match (left, takes_signed) {
            (true, false) => 128,
            (false, true) => -128,
            _ => 0,
        };
        Some(WordProducts { instruction, is_left_second, added })
    }

    /// Number of terms in a word of 32 bits.
    pub fn terms_per_word(self) -> u64 {
        self.instruction.terms_per_word()
    }

    /// Whether a separate instruction adds the products to the sums.
    pub fn adds_apart(self) -> bool {
        self.instruction == DotInstruction::Pmaddwd
    }

    /// Whether the top bit of each byte of the left side is flipped.
    pub fn is_left_flipped(self) -> bool {
        self.added != 0
    }

    /// Factor of the correction for flipped signs: this times the sum of a column of the right side is added to the column's sums of
    /// products. 0 if there is no correction.
    pub fn column_correction(self) -> i32 {
        -self.added
    }

    /// The operands of the instruction, for a word of the left side and one of the right.
    pub fn operands(self, left: ExprId, right: ExprId) -> (ExprId, ExprId) {
        if self.is_left_second { (right, left) } else { (left, right) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_signs_give_the_sum_of_products() {
        let bytes = [0u8, 1, 127, 128, 129, 200, 255, 64];
        let value =
            |dtype: DType, byte: u8| if dtype == DType::S8 { i32::from(byte.cast_signed()) } else { i32::from(byte) };
        for instruction in [DotInstruction::Vpdpbusd, DotInstruction::Sdot] {
            for (left, right) in [DType::S8, DType::U8].into_iter().flat_map(|l| [DType::S8, DType::U8].map(|r| (l, r)))
            {
                let products = WordProducts::of_byte_operands(instruction, left, right).expect("bytes");
                for at in 0..4096usize {
                    let byte = |place: usize| bytes[at >> (3 * place) & 7];
                    let (x, y) = ([byte(0), byte(1), byte(2), byte(3)], [byte(3), byte(0), byte(1), byte(1)]);
                    let flip = if products.is_left_flipped() { 0x8080_8080 } else { 0 };
                    let (l, r) = (u32::from_le_bytes(x) ^ flip, u32::from_le_bytes(y));
                    let sum = match products.is_left_second {
                        true => products.instruction.evaluate_sum(r, l, 7),
                        false => products.instruction.evaluate_sum(l, r, 7),
                    };
                    let column: i32 = y.iter().map(|&b| value(right, b)).sum();
                    let want: i32 = 7 + x.iter().zip(y).map(|(&a, b)| value(left, a) * value(right, b)).sum::<i32>();
                    assert_eq!(
                        sum.cast_signed() + products.column_correction() * column,
                        want,
                        "{instruction:?} {left} {right} {x:?} {y:?}"
                    );
                }
            }
        }
    }
}
