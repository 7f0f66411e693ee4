//! A run of elements in vectors: whole ones, then what is left.
use crate::schedule::loops::prelude::*;
use crate::target::IsaLevel;

/// Upper limit of vectors whose reductions are interleaved, so that no step waits for the previous step of the same reduction.
pub(in crate::schedule) const SIDE_BY_SIDE: u64 = 4;

/// Vector widths by which a run of elements is divided.
#[derive(Clone, Copy, Debug)]
pub(in crate::schedule) struct VectorWidth {
    /// Lanes of a full vector.
    pub lanes: u64,
    /// Whether a masked load or store takes no longer than a full vector's. Only AVX-512's does: with AVX2 a masked store takes a dozen
    /// micro-operations, and LLVM splits it into scalar stores for NEON. A load of the memory behind the active lanes waits for a recent
    /// masked store, so products, whose epilogues write over what they read, use narrower vectors with AVX-512 too.
    pub masks: bool,
}

/// A run of vectors: `blocks` vectors of `lanes` elements each, from element `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::schedule) struct VectorRun {
    pub first: u64,
    pub blocks: u64,
    pub lanes: u64,
    /// Kind of the loop over a vector's lanes.
    pub kind: LoopKind,
}

impl VectorWidth {
    /// Divides `all` elements into full vectors and a remainder: one partial vector, or narrower and narrower ones.
    pub(in crate::schedule) fn split(self, all: u64) -> Vec<VectorRun> {
        let (mut cuts, mut first, mut lanes) = (Vec::new(), 0, self.lanes);
        while first < all {
            let left = all - first;
            if let Some(kind) = self.tail_kind(left, lanes) {
                cuts.push(VectorRun { first, blocks: 1, lanes: left.next_power_of_two(), kind });
                break;
            }
            match left / lanes {
                0 => lanes = (lanes / 2).max(1),
                blocks => {
                    cuts.push(VectorRun { first, blocks, lanes, kind: LoopKind::Vector });
                    first += blocks * lanes;
                }
            }
        }
        cuts
    }

    /// Kind of the lane loop of one partial vector that holds `left` of `lanes` elements; `None` if narrower vectors are better.
    fn tail_kind(self, left: u64, lanes: u64) -> Option<LoopKind> {
        (self.masks && 0 < left && left < lanes && !left.is_power_of_two()).then_some(LoopKind::Masked(left))
    }
}

impl VectorRun {
    /// Splits the vectors of the run into vectors of at most `width.lanes` lanes: full ones into equal parts, the valid lanes of a partial
    /// one as `width` splits a run.
    pub(in crate::schedule) fn narrow(self, width: VectorWidth) -> Vec<VectorRun> {
        match self.kind {
            LoopKind::Masked(valid) => {
                let parts = width.split(valid).into_iter();
                parts.map(|part| VectorRun { first: self.first + part.first, ..part }).collect()
            }
            LoopKind::Vector | LoopKind::Seq | LoopKind::Unroll => {
                let lanes = self.lanes.min(width.lanes);
                vec![VectorRun { blocks: self.blocks * (self.lanes / lanes), lanes, ..self }]
            }
        }
    }

    /// Number of consecutive elements along the vectorized axis that the loop computes.
    pub(in crate::schedule) fn element_count(&self) -> u64 {
        match self.kind {
            LoopKind::Masked(valid) => valid,
            LoopKind::Vector | LoopKind::Seq | LoopKind::Unroll => self.blocks * self.lanes,
        }
    }

    /// Number of vectors to interleave, at most `most`: a number that divides them evenly.
    pub(in crate::schedule) fn interleave_factor(&self, most: u64) -> u64 {
        (1..=most).rev().find(|&n| self.blocks.is_multiple_of(n)).unwrap_or(1)
    }

    /// Wraps `body` in loops over the vectors (`block`) and their lanes.
    pub(in crate::schedule) fn loop_nest(&self, block: VarId, lane: VarId, body: Vec<Stmt>) -> Stmt {
        for_loop(block, LoopKind::Seq, vec![for_loop(lane, self.kind, body)])
    }

    /// The index of lane `lane` of vector `block`.
    pub(in crate::schedule) fn element_index(&self, block: &Index, lane: VarId) -> Index {
        block.scale(self.lanes as i64).add(&Index::var(lane)).offset(self.first as i64)
    }
}

impl Emitter<'_> {
    /// Widths of the processor's own vectors, for loops inside a chunk over elements that are computed independently of each other.
    pub(in crate::schedule) fn processor_width(&self, dtype: DType) -> VectorWidth {
        VectorWidth { lanes: self.processor_lanes(dtype), masks: self.target.has_masks() }
    }

    /// Widths of the vectors of `KernelTarget::machine`: for sums that are spread over lanes, and for loops that are divided into chunks.
    pub(in crate::schedule) fn vector_width(&self, dtype: DType) -> VectorWidth {
        VectorWidth { lanes: self.vector_lanes(dtype), masks: self.target.machine().level == IsaLevel::Avx512 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(masks: bool, all: u64) -> Vec<(u64, u64, u64, LoopKind)> {
        let cuts = VectorWidth { lanes: 16, masks }.split(all);
        cuts.iter().map(|c| (c.first, c.blocks, c.lanes, c.kind)).collect()
    }

    #[test]
    fn narrower_vectors_hold_the_same_elements() {
        let narrow = |all: u64| {
            let runs = VectorWidth { lanes: 16, masks: true }.split(all).into_iter();
            let parts = runs.flat_map(|run| run.narrow(VectorWidth { lanes: 8, masks: false }));
            parts.map(|c| (c.first, c.blocks, c.lanes)).collect::<Vec<_>>()
        };
        assert_eq!(narrow(43), [(0, 4, 8), (32, 1, 8), (40, 1, 2), (42, 1, 1)]);
        assert_eq!(narrow(36), [(0, 4, 8), (32, 1, 4)]);
        let same = VectorWidth { lanes: 16, masks: true };
        assert_eq!(same.split(43).into_iter().flat_map(|run| run.narrow(same)).collect::<Vec<_>>(), same.split(43));
    }

    #[test]
    fn what_is_left_is_one_vector_where_there_are_masks() {
        let whole = (0, 2, 16, LoopKind::Vector);
        assert_eq!(cuts(true, 43), [whole, (32, 1, 16, LoopKind::Masked(11))]);
        assert_eq!(cuts(true, 35), [whole, (32, 1, 4, LoopKind::Masked(3))]);
        assert_eq!(cuts(true, 40), [whole, (32, 1, 8, LoopKind::Vector)]);
        let halves = [(32, 1, 8), (40, 1, 2), (42, 1, 1)].map(|(f, b, l)| (f, b, l, LoopKind::Vector));
        assert_eq!(cuts(false, 43), [vec![whole], halves.to_vec()].concat());
        assert_eq!(cuts(true, 0), []);
    }
}
