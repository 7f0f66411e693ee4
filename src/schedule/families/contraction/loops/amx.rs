//! Products of bf16 and of bytes by tiles: blocks of rows and columns whose sums go to the stack, from where the epilogue reads them.
use crate::kernel::{TileRows, TileSums};
use crate::schedule::families::contraction::loops::register_block::{RegisterBlock, StackRows};
use crate::schedule::families::contraction::recipe::amx::terms_per_round;
use crate::schedule::families::contraction::recipe::axis::ContractionAxis;
use crate::schedule::loops::prelude::*;
use crate::target::tiles::{COLUMNS, ROWS, TileProduct};

/// Emits the sums of a block with AMX tiles and stores them on the stack.
pub(in crate::schedule) fn emit_amx_sums(
    e: &mut KernelBuilder,
    left: BufId,
    product: TileProduct,
    sum: &[ContractionAxis],
    part: &RegisterBlock,
    to: StackRows,
) -> Vec<Stmt> {
    let terms = sum.last().map_or(1, |x| x.extent);
    let whole = terms_per_round(product, terms);
    let rounds = terms / whole;
    let mut body = Vec::new();
    for (from, rounds, at_once) in [(0, rounds, whole), (rounds * whole, 1, terms % whole)] {
        if at_once == 0 {
            continue;
        }
        let (loops, a, position) = contracted_loops(&mut e.k, sum, from, rounds, at_once, &part.a);
        body.push(Stmt::Tiles(Box::new(TileSums {
            product,
            loops,
            terms: at_once,
            left,
            rows: rows(&part.rows, &a),
            right: part.packed,
            first: part.b.add(&position.scale(part.term as i64)),
            stride: product.terms_per_word() * part.term,
            across: to.width / COLUMNS,
            to: to.buf,
            at: Index::default(),
            adds: from > 0,
        })));
    }
    body
}

/// Creates the loops over the contracted axes: along the last one, `rounds` rounds of `at_once` terms from term `from` on. Also returns the
/// index at which a round reads the left side, whose first element is at `left`, and the number of the round's first term.
fn contracted_loops(
    k: &mut Kernel,
    sum: &[ContractionAxis],
    from: u64,
    rounds: u64,
    at_once: u64,
    left: &Index,
) -> (Vec<VarId>, Index, Index) {
    let (mut loops, mut left, mut position) = (Vec::new(), left.clone(), Index::default());
    for (i, axis) in sum.iter().enumerate() {
        let is_last = i + 1 == sum.len();
        let v = k.add_var(if is_last { rounds } else { axis.extent });
        loops.push(v);
        let x = if is_last { Index::var(v).scale(at_once as i64).offset(from as i64) } else { Index::var(v) };
        left = left.add(&x.scale(axis.a));
        position = position.scale(axis.extent as i64).add(&x);
    }
    (loops, left, position)
}

/// Groups the rows of a block into AMX tiles of evenly spaced rows, at most [`ROWS`] each. `all` has the offset of each row from the first
/// one, whose index is `first`.
fn rows(all: &[(i64, Index)], first: &Index) -> Vec<TileRows> {
    let mut tiles: Vec<(i64, TileRows)> = Vec::new();
    for &(away, _) in all {
        if let Some((from, tile)) = tiles.last_mut().filter(|(_, tile)| tile.count < ROWS) {
            let step = (away - *from) as u64;
            if tile.count == 1 || step == tile.count * tile.stride {
                tile.stride = step / tile.count;
                tile.count += 1;
                continue;
            }
        }
        tiles.push((away, TileRows { first: first.offset(away), stride: 0, count: 1 }));
    }
    tiles.into_iter().map(|(_, tile)| tile).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_lie_evenly_are_a_tile() {
        let tiles = |all: &[i64]| {
            let all: Vec<(i64, Index)> = all.iter().map(|&away| (away, Index::default())).collect();
            let tiles = rows(&all, &Index::constant(5));
            tiles.iter().map(|t| (t.first.constant, t.stride, t.count)).collect::<Vec<_>>()
        };
        assert_eq!(tiles(&[0]), [(5, 0, 1)]);
        let many: Vec<i64> = (0..28).map(|i| i * 3).collect();
        assert_eq!(tiles(&many), [(5, 3, 16), (53, 3, 12)]);
        assert_eq!(tiles(&[0, 4, 8, 20, 24, 28]), [(5, 4, 3), (25, 4, 3)]);
        assert_eq!(tiles(&[0, 0]), [(5, 0, 2)]);
    }
}
