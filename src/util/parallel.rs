//! Parallel work on the items of a slice, with one thread per processor.
use std::sync::atomic::{AtomicUsize, Ordering};

/// Applies `work` to each item on several threads, and returns the results in the items' order. A thread that has finished an item takes
/// the next one. A panic in a thread is propagated.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let share = || {
        let mut made = Vec::new();
        while let Some((at, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?)))
        {
            made.push((at, work(item)));
        }
        made
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let mut all = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(share)).collect();
        let mut all = share();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1000).collect();
        assert_eq!(super::map(&items, |n| n * n), items.iter().map(|n| n * n).collect::<Vec<_>>());
        assert_eq!(super::map(&[], |n: &u64| *n), Vec::<u64>::new());
    }
}
