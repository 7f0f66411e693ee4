//! Rendezvous of threads that stand for ranks: each contributes a value and gets those of all ranks in its group.
use std::collections::{HashMap, HashSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The reason why an exchange failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeetingError {
    /// Another rank failed.
    Failed,
    /// All remaining ranks wait for each other in vain.
    Waiting,
}

/// A rendezvous of ranks. All members of a group must take part in their common exchanges in the same order.
#[derive(Debug)]
pub struct Meetings<T> {
    count: usize,
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    open: HashMap<Vec<u32>, Meeting<T>>,
    /// Ranks that contributed a value and wait for others.
    waiting: HashSet<u32>,
    ended: usize,
    apart: Option<MeetingError>,
}

#[derive(Debug)]
struct Meeting<T> {
    values: Vec<Option<T>>,
    /// Number of ranks that have yet to collect the values; 0 while values are missing.
    leaving: usize,
}

impl<T: Clone> Meetings<T> {
    /// A rendezvous of `count` ranks.
    pub fn new(count: usize) -> Self {
        let state = State { open: HashMap::new(), waiting: HashSet::new(), ended: 0, apart: None };
        Meetings { count, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Contributes `value` for `rank` and returns the values of `group`, which contains the rank, in the group's order.
    ///
    /// # Errors
    /// If another rank failed, or the missing ranks will not come; all later calls fail as well.
    pub fn exchange(&self, rank: u32, group: &[u32], value: T) -> Result<Vec<T>, MeetingError> {
        let mut state = self.lock();
        // a previous exchange of the group may still be collected by others
        while state.apart.is_none() && state.open.get(group).is_some_and(|m| m.leaving > 0) {
            state = self.wait(state);
        }
        let size = group.len();
        let meeting =
            state.open.entry(group.to_vec()).or_insert_with(|| Meeting { values: vec![None; size], leaving: 0 });
        for (slot, _) in meeting.values.iter_mut().zip(group).filter(|(_, member)| **member == rank) {
            *slot = Some(value.clone());
        }
        if meeting.values.iter().all(Option::is_some) {
            meeting.leaving = size;
            state.waiting.retain(|member| !group.contains(member));
            self.changed.notify_all();
        } else {
            state.waiting.insert(rank);
            self.look(&mut state);
        }
        loop {
            if let Some(apart) = state.apart {
                return Err(apart);
            }
            if state.open.get(group).is_some_and(|m| m.leaving > 0) {
                break;
            }
            state = self.wait(state);
        }
        let Some(meeting) = state.open.get_mut(group) else { return Err(MeetingError::Failed) };
        let values: Vec<T> = meeting.values.iter().flatten().cloned().collect();
        meeting.leaving -= 1;
        if meeting.leaving == 0 {
            state.open.remove(group);
            self.changed.notify_all();
        }
        Ok(values)
    }

    /// Declares that a rank takes part in no further exchange.
    pub fn end(&self) {
        let mut state = self.lock();
        state.ended += 1;
        self.look(&mut state);
    }

    /// Declares that a rank failed, so that all waiting and later exchanges fail.
    pub fn fail(&self) {
        self.lock().apart.get_or_insert(MeetingError::Failed);
        self.changed.notify_all();
    }

    /// Fails all exchanges if no rank is left that could contribute the missing values.
    fn look(&self, state: &mut State<T>) {
        if !state.waiting.is_empty() && state.waiting.len() + state.ended >= self.count {
            state.apart.get_or_insert(MeetingError::Waiting);
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<T>>) -> MutexGuard<'a, State<T>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each<R: Send>(count: u32, f: impl Fn(u32) -> R + Sync) -> Vec<R> {
        std::thread::scope(|scope| {
            let f = &f;
            let all: Vec<_> = (0..count).map(|rank| scope.spawn(move || f(rank))).collect();
            all.into_iter().map(|t| t.join().expect("no panic")).collect()
        })
    }

    #[test]
    fn values_come_in_the_order_of_the_group() {
        let meetings = Meetings::new(4);
        let got = each(4, |rank| {
            let group: &[u32] = if rank % 2 == 0 { &[2, 0] } else { &[1, 3] };
            let rounds = (0..100).map(|i| meetings.exchange(rank, group, rank * 1000 + i).expect("all come"));
            rounds.collect::<Vec<_>>()
        });
        let want = |a: u32, b: u32| (0..100).map(|i| vec![a * 1000 + i, b * 1000 + i]).collect::<Vec<_>>();
        assert_eq!(got, [want(2, 0), want(1, 3), want(2, 0), want(1, 3)]);
    }

    #[test]
    fn nobody_waits_for_who_left_or_waits() {
        let meetings = Meetings::new(3);
        let got = each(3, |rank| match rank {
            0 => {
                meetings.end();
                Ok(Vec::new())
            }
            1 => meetings.exchange(1, &[0, 1], 1),
            _ => meetings.exchange(2, &[1, 2], 2),
        });
        assert_eq!(got[1..], [Err(MeetingError::Waiting), Err(MeetingError::Waiting)]);
        let meetings = Meetings::new(2);
        let got = each(2, |rank| match rank {
            0 => {
                meetings.fail();
                Ok(Vec::new())
            }
            _ => meetings.exchange(1, &[0, 1], 1),
        });
        assert_eq!(got[1], Err(MeetingError::Failed));
    }
}
