//! Winograd's method along one axis piece by piece: some tiles are transformed, multiplied and transformed back before the next
//! ones begin, all of it on the stack. Pieces are the chunks. This is what strips and blocks have in common.
use super::Winograd1d;
use crate::schedule::plan::axis::{Axis, merged, product};
use crate::schedule::plan::points::apart;
use crate::schedule::plan::tile::{self, Cover, Tile};
use crate::target::Target;
use crate::tensor::DType;

/// The rows of products, and the tile that they are made in.
#[derive(Clone, Debug)]
pub struct Rows {
    pub axes: Vec<Axis>,
    pub tile: Tile,
    /// What the tuned choices call them.
    pub form: String,
}

impl Rows {
    /// Columns of a panel.
    pub fn panel(&self) -> u64 {
        self.tile.vectors * self.tile.lanes
    }
}

/// How much a piece is.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Tiles that it reads, and that it makes.
    pub tiles: [u64; 2],
    /// The rows of its products.
    pub rows: Rows,
    /// The terms of each: how many along each axis, and how far apart.
    pub sum: Vec<(u64, u64)>,
}

impl Piece {
    /// How far points are apart: inputs, sums.
    pub fn apart(&self, w: &Winograd1d) -> [u64; 2] {
        [self.tiles[0] * w.inputs, self.tiles[1] * self.rows.panel()].map(apart)
    }
    pub fn bytes(&self, w: &Winograd1d) -> u64 {
        4 * w.points.count() * self.apart(w).iter().sum::<u64>()
    }
}

/// Rows of products with so many columns: how many there are along each axis, and how far apart.
pub fn rows(target: &Target, w: &Winograd1d, rows: &[(u64, u64)], columns: u64) -> Rows {
    let all: Vec<Axis> = rows.iter().map(|&(extent, a)| Axis { extent, a: a as i64, b: 0 }).collect();
    let mut axes = merged(&all);
    if axes.is_empty() {
        axes.push(Axis { extent: 1, a: 0, b: 0 });
    }
    let height = axes.len().checked_sub(2).map_or(1, |i| axes[i].extent);
    let last = axes[axes.len() - 1];
    let stride = last.a.unsigned_abs() * 4;
    let cover = Cover { height, width: last.extent, columns, sum: w.terms(), stride };
    let form = tile::form(target, DType::F32, cover, product(&axes), w.points.count());
    Rows { tile: tile::best(target, DType::F32, cover, &form), axes, form }
}
