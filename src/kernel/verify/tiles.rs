//! Rule k12, and what k2, k3 and k8 say of blocks of sums.
use super::Fault;
use super::body::BodyVerifier;
use crate::kernel::{LoopKind, TileSums, VarId, tile_product, tile_sum_type};
use crate::target::tiles::ROWS;
use crate::util::id_vec::Id;

/// Upper limit of tiles along each side of a block.
const MOST: u64 = 2;

impl BodyVerifier<'_> {
    /// Checks the shape and the types of a block of sums.
    pub(super) fn check_tiles(&mut self, sums: &TileSums) -> Result<(), Fault> {
        let types = [sums.left, sums.right, sums.to].map(|b| self.program.buffers[b].dtype);
        let is_product = tile_product(types[0], types[1]) == Some(sums.product);
        if !is_product || types[2] != tile_sum_type(sums.product) {
            return Err(format!("k12: tiles of {types:?}"));
        }
        if self.lane.is_some() {
            return Err("k12: tiles stand inside a vector loop".to_string());
        }
        let rows = sums.rows.iter().all(|r| (1..=ROWS).contains(&r.count));
        let tiles = [sums.rows.len() as u64, sums.across].iter().all(|n| (1..=MOST).contains(n));
        let per_word = sums.product.terms_per_word();
        let terms = (per_word..=sums.product.most_terms()).contains(&sums.terms) && sums.terms.is_multiple_of(per_word);
        if !rows || !tiles || !terms {
            return Err(format!("k12: {} by {} of {} terms", sums.rows(), sums.columns(), sums.terms));
        }
        self.check_storable(sums.to)?;
        self.rounds(&sums.loops, sums)
    }

    /// Checks the bounds of every element that a block of sums touches, inside the block's `loops`.
    fn rounds(&mut self, loops: &[VarId], sums: &TileSums) -> Result<(), Fault> {
        if let [first, inner @ ..] = loops {
            if self.open[first.index()].replace(LoopKind::Seq).is_some() {
                return Err(format!("k2: a loop over v{} stands inside itself", first.0));
            }
            self.rounds(inner, sums)?;
            self.open[first.index()] = None;
            return Ok(());
        }
        sums.reads().into_iter().chain([sums.writes()]).try_for_each(|span| {
            self.check_index(span.first)?;
            self.check_bounds(span.buf, span.first)?;
            self.check_bounds(span.buf, &span.first.offset(span.last as i64))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::{
        BufId, Buffer, BufferLocation, Index, Kernel, LoopKind, Program, Step, Stmt, TileRows, TileSums, verify,
    };
    use crate::target::tiles::TileProduct;
    use crate::tensor::DType;
    use crate::util::id_vec::Id;

    /// Three rounds of a block of 20 rows of 96 terms by 32 columns, changed by `change`.
    fn fault(change: impl FnOnce(&mut Program, &mut TileSums)) -> String {
        let mut program = Program { weights_bytes: 20 * 96 * 2 + 96 * 32 * 2, ..Program::default() };
        let mut k = Kernel::default();
        let round = k.add_var(3);
        let mut buffer = |dtype, elements, place| program.buffers.push(Buffer { dtype, elements, place });
        let left = buffer(DType::BF16, 20 * 96, BufferLocation::Weights(0));
        let right = buffer(DType::BF16, 96 * 32, BufferLocation::Weights(20 * 96 * 2));
        let to = buffer(DType::F32, 20 * 32, BufferLocation::Stack);
        let a = Index::var(round).scale(32);
        let mut sums = TileSums {
            product: TileProduct::Bf16,
            loops: vec![round],
            terms: 32,
            left,
            rows: vec![
                TileRows { first: a.clone(), stride: 96, count: 16 },
                TileRows { first: a.offset(16 * 96), stride: 96, count: 4 },
            ],
            right,
            first: Index::var(round).scale(32 * 32),
            stride: 64,
            across: 2,
            to,
            at: Index::default(),
            adds: false,
        };
        change(&mut program, &mut sums);
        k.body = vec![Stmt::Tiles(Box::new(sums))];
        let kernel = program.kernels.push(k);
        program.steps.push(Step::Launch(kernel));
        verify(&program).err().map_or(String::new(), |e| e.to_string())
    }

    #[test]
    fn blocks_keep_to_tiles_and_memory() {
        assert_eq!(fault(|_, _| {}), "");
        for (rule, change) in [
            ("k12", (|_, s| s.rows[0].count = 17) as fn(&mut Program, &mut TileSums)),
            ("k12", |_, s| s.terms = 31),
            ("k12", |_, s| s.terms = 34),
            ("k12", |_, s| s.across = 3),
            ("k12", |_, s| s.left = s.to),
            ("k12", |_, s| s.product = TileProduct::Bytes { signs: [true; 2] }),
            ("k8", |p, s| p.buffers[s.to].place = BufferLocation::Weights(0)),
            ("k3", |_, s| s.rows[1].count = 5),
            ("k3", |_, s| s.rows[1].stride = 97),
            ("k3", |_, s| s.stride = 66),
            ("k3", |p, s| p.buffers[s.to].elements -= 1),
            ("k2", |_, s| s.loops.clear()),
            ("k2", |_, s| s.loops.push(s.loops[0])),
            ("k9", |p, s| (p.buffers[s.left].place, p.workspace_bytes) = (BufferLocation::Workspace(0), 1 << 16)),
        ] {
            let told = fault(change);
            assert!(told.contains(rule), "{rule}: {told}");
        }
    }

    #[test]
    fn tiles_stand_outside_of_vectors() {
        let mut program = Program::default();
        let mut k = Kernel::default();
        let lane = k.add_var(4);
        for dtype in [DType::BF16, DType::F32] {
            program.buffers.push(Buffer { dtype, elements: 1024, place: BufferLocation::Stack });
        }
        let [left, to] = [0, 1].map(BufId::from_index);
        let row = TileRows { first: Index::default(), stride: 2, count: 4 };
        let (first, at) = (Index::default(), Index::default());
        let sums = TileSums {
            product: TileProduct::Bf16,
            loops: vec![],
            terms: 2,
            left,
            rows: vec![row],
            right: left,
            first,
            stride: 32,
            across: 1,
            to,
            at,
            adds: false,
        };
        k.body = vec![Stmt::For { var: lane, kind: LoopKind::Vector, body: vec![Stmt::Tiles(Box::new(sums))] }];
        program.kernels.push(k);
        assert!(verify(&program).err().is_some_and(|e| e.to_string().contains("k12")));
    }
}
