//! Where threads meet that stand for ranks: each brings a value and takes those of all in its group.
use std::collections::{HashMap, HashSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Why no values came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeetingError {
    /// Another rank failed.
    Failed,
    /// All ranks that are left wait for others.
    Waiting,
}

/// The meetings of some ranks, which take part in any order of groups that is the same for all members of each.
#[derive(Debug)]
pub struct Meetings<T> {
    count: usize,
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    open: HashMap<Vec<u32>, Meeting<T>>,
    /// Ranks that brought a value and lack those of others.
    waiting: HashSet<u32>,
    ended: usize,
    apart: Option<MeetingError>,
}

#[derive(Debug)]
struct Meeting<T> {
    values: Vec<Option<T>>,
    /// How many have yet to take the values; 0 while some are missing.
    leaving: usize,
}

impl<T: Clone> Meetings<T> {
    /// A meeting point of `count` ranks.
    pub fn new(count: usize) -> Self {
        let state = State { open: HashMap::new(), waiting: HashSet::new(), ended: 0, apart: None };
        Meetings { count, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The values of `group` in its order, one of them `value` of `rank`, which is in the group.
    ///
    /// # Errors
    /// Where another rank failed or those that are missing will not come, and at each call behind that.
    pub fn exchange(&self, rank: u32, group: &[u32], value: T) -> Result<Vec<T>, MeetingError> {
        let mut state = self.lock();
        // the one before may not be over for others
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

    /// Says that a rank does not come any more.
    pub fn end(&self) {
        let mut state = self.lock();
        state.ended += 1;
        self.look(&mut state);
    }

    /// Says that a rank failed: nobody waits any more.
    pub fn fail(&self) {
        self.lock().apart.get_or_insert(MeetingError::Failed);
        self.changed.notify_all();
    }

    /// Ends all where nobody is left who could bring what is missing.
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
