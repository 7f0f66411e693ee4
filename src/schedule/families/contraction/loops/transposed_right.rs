//! Products of few rows with a right side that lies turned, the terms of a column side by side, such as the keys that the query
//! of one position meets: sums along those terms, where they lie. Packed for lanes along columns, all of it would be read and
//! written for few multiply-adds.
use crate::schedule::families::contraction::loops::inner_product::{VectorOperand, vectorized_sums};
use crate::schedule::families::contraction::loops::operands::Contraction;
use crate::schedule::families::contraction::loops::register_block::{RegisterBlock, StackRows};
use crate::schedule::families::contraction::recipe::axis::ContractionAxis;
use crate::schedule::families::contraction::recipe::inner_product::InnerProductTile;
use crate::schedule::loops::prelude::*;

impl Emitter<'_> {
    /// Emits the sums of a tile on the stack, from a right side in place whose columns are `apart` elements apart.
    pub(in crate::schedule) fn sums_of_transposed_right(
        &self,
        e: &mut KernelBuilder,
        c: &Contraction,
        sum: &[ContractionAxis],
        part: &RegisterBlock,
        apart: u64,
        StackRows { buf, width }: StackRows,
    ) -> Vec<Stmt> {
        let step = part.rows.get(1).map_or(0, |row| row.0);
        let rows = VectorOperand { buf: c.left, from: part.a.clone(), step, count: part.rows.len() as u64 };
        // the columns pass, the rows stay
        let swapped: Vec<ContractionAxis> = sum.iter().map(|x| ContractionAxis { a: x.b, b: x.a, ..*x }).collect();
        let run = sum.last().map_or(1, |x| x.extent);
        let registers = self.target.vectors_in_registers();
        let InnerProductTile { lanes, columns: block, .. } =
            InnerProductTile::for_few_rows([run, self.vector_lanes(c.dtype)], rows.count, registers);
        let (whole, rest) = (part.columns / block, part.columns % block);
        let mut body = Vec::new();
        for (first, rounds, count) in [(0, whole, block), (whole * block, rest.min(1), rest)] {
            if rounds == 0 {
                continue;
            }
            let round = e.k.add_var(rounds);
            let column = Index::var(round).scale(count as i64).offset(first as i64);
            let from = part.b.add(&column.scale(apart as i64));
            let columns = VectorOperand { buf: part.packed, from, step: apart as i64, count };
            let (mut inside, totals) = vectorized_sums(e, c.dtype, &swapped, &columns, &rows, lanes);
            for (i, value) in totals.into_iter().enumerate() {
                let (j, r) = (i as u64 / rows.count, i as u64 % rows.count);
                inside.push(Stmt::Store { buf, index: column.offset((r * width + j) as i64), value });
            }
            body.push(for_loop(round, LoopKind::Seq, inside));
        }
        body
    }
}
