//! Where memory lies that is wanted from one moment to another, so that little is taken: several orders, first fit.
use super::live::{self, Span};
use crate::kernel::BufId;
use crate::util::id_vec::Id;

/// A buffer that needs memory from one launch to another.
#[derive(Clone, Copy)]
pub struct Wanted {
    /// The buffer.
    pub buf: BufId,
    /// Its size, whole units of what it is aligned to.
    pub bytes: u64,
    /// What its offset is a multiple of.
    pub align: u64,
    /// From its first launch to its last.
    pub span: Span,
}

/// Comparisons of two buffers that a better plan may cost.
const BUDGET: u64 = 50_000_000;

/// The bytes of the best plan that was found, and its offsets.
///
/// The buffers are placed one after the other, each at the lowest offset where nothing else lives at the same time: the
/// largest first, then the longest-lived, then in the order of the program. Where that is more than what lives at one launch,
/// the buffer that ends highest is placed before all others, over and over; the best plan of all is kept.
pub fn best(wanted: &[Wanted]) -> (u64, Vec<u64>) {
    let (least, _) = most_at_once(wanted);
    let mut orders: Vec<Vec<usize>> = vec![(0..wanted.len()).collect(); 3];
    let of = |i: &usize| &wanted[*i];
    orders[0].sort_by_key(|i| (std::cmp::Reverse(of(i).bytes), of(i).buf.index()));
    orders[1].sort_by_key(|i| (std::cmp::Reverse(of(i).span.last - of(i).span.first), of(i).buf.index()));
    orders[2].sort_by_key(|i| (of(i).span.first, std::cmp::Reverse(of(i).bytes), of(i).buf.index()));
    let mut found = place(wanted, &orders[0]);
    let mut rounds = BUDGET / (wanted.len() as u64).pow(2).max(1);
    for order in &mut orders {
        let mut tried = place(wanted, order);
        for _ in 0..wanted.len() {
            if tried.0 < found.0 {
                found = tried.clone();
            }
            if found.0 <= least || rounds == 0 {
                return found;
            }
            rounds -= 1;
            let highest = order.iter().position(|&i| tried.1[i] + wanted[i].bytes == tried.0);
            let Some(highest) = highest.filter(|&at| at > 0) else { break };
            order[..=highest].rotate_right(1);
            tried = place(wanted, order);
        }
    }
    found
}

/// The bytes that live at the launch where most do, and the first such launch: no plan takes less.
pub fn most_at_once(wanted: &[Wanted]) -> (u64, Option<usize>) {
    live::most(wanted.iter().map(|w| (w.bytes, w.span)))
}

/// The bytes and the offsets of the plan that places buffers in this order.
fn place(wanted: &[Wanted], order: &[usize]) -> (u64, Vec<u64>) {
    let (mut offsets, mut top) = (vec![0; wanted.len()], 0);
    let mut placed: Vec<(Wanted, u64)> = Vec::with_capacity(order.len());
    let mut taken = Vec::new();
    for &i in order {
        let w = wanted[i];
        taken.clear();
        let beside = placed.iter().filter(|(p, _)| p.span.meets(w.span));
        taken.extend(beside.map(|(p, at)| (*at, at.saturating_add(p.bytes))));
        taken.sort_unstable();
        let mut at = 0u64;
        for &(from, to) in &taken {
            if from >= at.saturating_add(w.bytes) {
                break;
            }
            at = at.max(to).next_multiple_of(w.align);
        }
        placed.push((w, at));
        offsets[i] = at;
        top = top.max(at.saturating_add(w.bytes));
    }
    (top, offsets)
}

/// The most bytes that live at a launch of `span`.
pub fn most_within<'w>(wanted: impl Iterator<Item = &'w Wanted>, span: Span) -> u64 {
    live::most(wanted.filter_map(|w| Some((w.bytes, w.span.within(span)?)))).0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(all: &[(u64, usize, usize)]) -> Vec<Wanted> {
        let one = |(i, &(bytes, first, last)): (usize, &(u64, usize, usize))| Wanted {
            buf: BufId(i as u32),
            bytes,
            align: 1,
            span: Span { first, last },
        };
        all.iter().enumerate().map(one).collect()
    }

    #[test]
    fn what_lives_between_two_launches_is_counted_there_alone() {
        let wanted = wanted(&[(64, 0, 1), (128, 2, 4), (32, 3, 5), (256, 5, 6)]);
        let span = Span { first: 1, last: 3 };
        assert_eq!(most_within(wanted.iter(), span), 160);
        assert_eq!(most_within(wanted[..1].iter(), span), 64);
    }

    #[test]
    fn another_order_takes_less_than_the_largest_first() {
        // the two largest lie beside one another; what lives with both of its neighbours fits between only if it comes earlier
        let wanted = wanted(&[(336, 5, 6), (335, 3, 5), (334, 7, 14), (168, 6, 7), (64, 0, 20)]);
        let by_size: Vec<usize> = vec![0, 1, 2, 3, 4];
        let (top, offsets) = best(&wanted);
        assert!(top <= place(&wanted, &by_size).0);
        assert_eq!(top, most_at_once(&wanted).0);
        for (i, a) in wanted.iter().enumerate() {
            for (j, b) in wanted.iter().enumerate().skip(i + 1) {
                assert!(
                    !a.span.meets(b.span) || offsets[i] + a.bytes <= offsets[j] || offsets[j] + b.bytes <= offsets[i]
                );
            }
        }
    }
}
