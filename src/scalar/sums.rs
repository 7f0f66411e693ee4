//! In what order the products of a contraction are added: the one rule of both engines.
use std::ops::Range;

/// The terms of a sum in groups; each group is added up on its own, in parts, and so are the groups.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SumParts {
    /// The terms of each group, in units.
    pub groups: Vec<Range<u64>>,
    /// Units of one part; the last part of a group may be shorter.
    pub most: u64,
}

/// Most terms that are added one after another.
const MOST_TERMS: u64 = 320;

/// Products that keep a thread busy, whatever the processor.
const PRODUCTS_OF_A_THREAD: u64 = 1_600_000;

impl SumParts {
    /// All terms one after another.
    pub fn in_order(units: u64) -> SumParts {
        SumParts { groups: std::iter::once(0..units).collect(), most: units.max(1) }
    }

    /// How each of `outputs` sums of `units` times `unit` floats is split. Sums of many terms are made of nearly equal
    /// parts, multiples of eight terms where a unit is one term. Where a part of all sums is too little for two threads and
    /// the whole is not, it is made of two halves. Such sums are more accurate than one after another, and they are the
    /// sums of TensorFlow on two threads, whose matrix products Eigen divides so (`TensorContractionThreadPool.h`).
    pub fn of_floats(units: u64, unit: u64, outputs: u64) -> SumParts {
        let terms = units.saturating_mul(unit);
        if terms <= MOST_TERMS {
            return SumParts::in_order(units);
        }
        let part = |terms: u64| terms.div_ceil(terms.div_ceil(MOST_TERMS)).next_multiple_of(8);
        let busy = |terms: u64| terms.saturating_mul(outputs) > PRODUCTS_OF_A_THREAD;
        if unit == 1 && !busy(part(terms)) && busy(terms) {
            let half = terms.div_ceil(2).next_multiple_of(8);
            return SumParts { groups: vec![0..half, half..units], most: part(half) };
        }
        SumParts { groups: std::iter::once(0..units).collect(), most: (part(terms) / unit.max(1)).max(1) }
    }

    /// The parts of one group.
    pub fn of_group(&self, group: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let (end, most) = (group.end, self.most.max(1) as usize);
        group.clone().step_by(most).map(move |start| start..(start + most as u64).min(end))
    }
}

#[cfg(test)]
mod tests {
    use super::SumParts;

    /// TensorFlow 2.21's partition on two threads, found by comparing bits.
    #[test]
    fn parts_are_eigens() {
        let parts = |terms, outputs| {
            let p = SumParts::of_floats(terms, 1, outputs);
            (p.groups.len(), p.most)
        };
        for (terms, outputs, expected) in [
            (304, 256 * 64, (1, 304)),
            (320, 256 * 64, (1, 320)),
            (328, 256 * 64, (1, 168)),
            (336, 1024 * 56, (1, 168)),
            (672, 256 * 112, (1, 224)),
            (960, 256 * 160, (1, 320)),
            (960, 16 * 48, (1, 320)),
            (1632, 64 * 272, (1, 272)),
            (1632, 64 * 96, (1, 272)),
            (1632, 256 * 48, (1, 272)),
            (1632, 64 * 48, (2, 272)),
            (1632, 16 * 272, (2, 272)),
        ] {
            assert_eq!(parts(terms, outputs), expected, "{terms} terms, {outputs} sums");
        }
    }

    #[test]
    fn groups_and_parts_cover_all_terms_once() {
        for terms in [1, 319, 321, 1000, 1632, 5000] {
            for outputs in [1, 1000, 4000, 1 << 20] {
                let p = SumParts::of_floats(terms, 1, outputs);
                let all: Vec<u64> = p.groups.iter().flat_map(|g| p.of_group(g)).flatten().collect();
                assert_eq!(all, (0..terms).collect::<Vec<_>>());
            }
        }
    }
}
