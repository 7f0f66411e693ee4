//! The tiles that Winograd's method along two axes reads.
use super::super::each;
use super::super::positions::Positions;
use super::super::transform::Transform;
use super::Plane;
use crate::hlo::attrs::ConvDims;
use crate::kernel::{BufId, Expr, ExprId, Index, Kernel, LoopKind, Stmt, VarId};
use crate::schedule::plan::points::{Points, RESULTS};
use crate::schedule::plan::winograd::{POINTS, READS, Winograd};

/// `Bᵀ·d·B` of the tile that `loops` (image, row and column of tiles) are at, to an element of a buffer, each point `apart` from
/// the next.
pub(super) fn inputs_of_tile(
    k: &mut Kernel,
    lanes: u64,
    (d, reach): (&ConvDims, [u64; 2]),
    input: &[Plane],
    loops: [VarId; 3],
    (to, first, apart): (BufId, Index, u64),
) -> Vec<Stmt> {
    let (mut all, mut before) = (Vec::new(), 0);
    let [rows, columns] = [0, 1].map(|i| {
        let first = Index::var(loops[i + 1]).scale(RESULTS as i64).offset(-d.window[i].pad_low);
        Positions::new(k, &first, (READS, 1), reach[i])
    });
    for Plane { view, channels } in input {
        let (block, lane) = (k.var(channels / lanes), k.var(lanes));
        let channel = Index::var(block).scale(lanes as i64).add(&Index::var(lane));
        let mut from = channel.offset(view.layout.origin).add(&Index::var(loops[0]).scale(view.stride(d.input_batch)));
        let strides = [view.stride(d.input_spatial[0]), view.stride(d.input_spatial[1])];
        for (stride, w) in strides.iter().zip(&d.window) {
            from = from.offset(w.pad_low * stride);
        }
        let mut t = Transform::new(k, lanes);
        let half = t.registers(POINTS);
        for j in 0..READS as usize {
            let column = (0..READS as usize).map(|i| {
                let index = from.add(&rows.at(i, strides[0])).add(&columns.at(j, strides[1]));
                let value = t.expr(Expr::Load(view.buf, index));
                rows.or_zero(t.k, i, &[(&columns, j)], value)
            });
            let column: Vec<ExprId> = column.collect();
            for (i, value) in t.inputs(&Points::SQUARE, &column).into_iter().enumerate() {
                t.set(half, i as u64 * READS + j as u64, value);
            }
        }
        for i in 0..READS {
            let row: Vec<ExprId> = (0..READS).map(|j| t.get(half, i * READS + j)).collect();
            for (j, value) in t.inputs(&Points::SQUARE, &row).into_iter().enumerate() {
                let at = first.add(&channel).offset((before + (i * READS + j as u64) * apart) as i64);
                t.body.push(Stmt::Store { buf: to, index: at, value });
            }
        }
        all.push(each(block, LoopKind::Seq, vec![each(lane, LoopKind::Vector, t.body)]));
        before += channels;
    }
    columns.around(rows.around(all))
}

/// The loops over all tiles: image, row and column of tiles.
pub(super) fn tile_loops(k: &mut Kernel, w: &Winograd) -> [VarId; 3] {
    [w.images, w.tiles[0], w.tiles[1]].map(|n| k.var(n))
}

/// The number of a tile among those of all images.
pub(super) fn tile_number(w: &Winograd, loops: [VarId; 3]) -> Index {
    Index::var(loops[0])
        .scale(w.tiles[0] as i64)
        .add(&Index::var(loops[1]))
        .scale(w.tiles[1] as i64)
        .add(&Index::var(loops[2]))
}
