//! Sizes that values of a loop's body or of a branch say, and loops that are written round by round.
//!
//! What a loop or a branch of HLO leaves has fixed sizes; within it values may say sizes (`Where`, suppression of boxes). Where what it
//! leaves has such a size, and the condition of the loop is known before each round, the rounds are written one behind the other into
//! the entry computation.
use super::walker::{Slot, Walker};
use crate::diag::{Code, Error, Result};
use crate::graph::FuncRef;
use crate::hlo;
use crate::ops::holder::Holders;
use crate::ops::range::Ranges;
use crate::ops::spec::ValueSpec;
use crate::ops::{Store, Value};
use crate::symbolic::Dim;

/// Most rounds that are written in a program, those of loops inside of loops counted each time: data-dependent sizes are compared with
/// one another, so that time grows faster than their number.
const MOST_ROUNDS: usize = 64;

/// A place in the open computation, and what was known there.
pub(super) struct Mark {
    store: Store,
    holders: Holders,
    ranges: Ranges,
    pub errors: usize,
    pub module: hlo::BuilderCheckpoint,
}

/// Empty slots in the place of lowered results that were discarded, one for each, once errors tell why.
pub(super) fn without_values(made: Result<Vec<Slot>>) -> Result<Vec<Slot>> {
    made.map(|values| vec![None; values.len()])
}

impl Walker<'_> {
    /// The final values of a loop's variables: of a loop of HLO; where its body has data-dependent sizes, of written rounds; else of a
    /// loop whose lists have room for as many rounds as the caller allows.
    pub(super) fn while_loop(&mut self, cond: &FuncRef, body: &FuncRef, args: Vec<Value>) -> Result<Vec<Slot>> {
        if self.is_selecting {
            let told = "a loop in a branch that leaves arrays of another size than other branches";
            return Err(Error::user(Code::DynamicShape, told));
        }
        let (is_entry, may_be_allowed) = (self.b.depth() == 1, self.resizes && self.rounds_told(body).is_none());
        if !(is_entry || may_be_allowed && self.b.carries()) {
            return self.one_loop(cond, body, args, None);
        }
        let mark = self.mark();
        let looped = self.with_sizes_within(|w| w.one_loop(cond, body, args.clone(), None));
        if !self.is_refused(&looped, &mark, |code| code == Code::DynamicShape) {
            return looped;
        }
        let told = self.errors.split_off(mark.errors);
        self.return_to(&mark);
        if is_entry && let Some(values) = self.rounds(cond, body, args.clone())? {
            return Ok(values);
        }
        self.return_to(&mark);
        if may_be_allowed {
            let allowed = self.b.bound(&self.b.metadata.op_name);
            let bounded = self.one_loop(cond, body, args, Some(Dim::from(allowed)));
            if !self.is_refused(&bounded, &mark, |_| true) {
                return bounded;
            }
            self.return_to(&mark);
        }
        self.errors.extend(told);
        without_values(looped)
    }

    /// The values that a loop or branches leave, in which values may say sizes. Errors: `DynamicShape` where one of these is the size of
    /// what they leave, which shows as soon as the sizes are taken to be others.
    pub(super) fn with_sizes_within(&mut self, lower: impl Fn(&mut Self) -> Result<Vec<Slot>>) -> Result<Vec<Slot>> {
        let mark = self.mark();
        let made = lower(self);
        let has_own = self.b.data_sizes().len() > mark.module.found;
        if mark.module.depth > 1 || !has_own || self.is_refused(&made, &mark, |_| true) {
            return made;
        }
        let specs = self.specs_of(made?);
        self.return_to(&mark);
        let other = self.astray(&mark, &lower);
        let is_same = !self.is_refused(&other, &mark, |_| true) && self.specs_of(other?) == specs;
        self.return_to(&mark);
        if is_same {
            return lower(self);
        }
        let told = "how large what a loop or a branch leaves is depends on values within, and it has fixed sizes";
        Err(Error::user(Code::DynamicShape, told))
    }

    /// Runs `lower` with other values assumed for the data-dependent sizes that are met after `from`, to see what depends on them.
    pub(super) fn astray<T>(&mut self, from: &Mark, lower: impl Fn(&mut Self) -> T) -> T {
        let before = self.b.go_astray(None);
        let first = before.map_or(from.module.found, |first| first.min(from.module.found));
        self.b.go_astray(Some(first));
        let made = lower(self);
        self.b.go_astray(before);
        made
    }

    fn specs_of(&self, values: Vec<Slot>) -> Vec<Option<ValueSpec>> {
        values.iter().map(|value| value.as_ref().map(|value| self.spec(value))).collect()
    }

    pub(super) fn mark(&self) -> Mark {
        let (store, holders, ranges) = (self.store.clone(), self.holders.clone(), self.ranges.clone());
        Mark { store, holders, ranges, errors: self.errors.len(), module: self.b.mark() }
    }

    /// Goes back to where the computation was then, to lower a loop in another way.
    pub(super) fn return_to(&mut self, mark: &Mark) {
        (self.store, self.holders) = (mark.store.clone(), mark.holders.clone());
        self.ranges = mark.ranges.clone();
        self.errors.truncate(mark.errors);
        self.b.return_to(&mark.module);
    }

    /// Whether what was lowered since then is refused for a reason of this kind.
    pub(super) fn is_refused(&self, made: &Result<Vec<Slot>>, mark: &Mark, of_kind: impl Fn(Code) -> bool) -> bool {
        match made {
            Err(Error::User(all)) => all.iter().any(|d| of_kind(d.code)),
            Err(_) => false,
            Ok(_) => self.errors[mark.errors..].iter().any(|d| of_kind(d.code)),
        }
    }

    /// The values after the last round; `None` where it is not known before each round whether there is one, or where there are too many.
    fn rounds(&mut self, cond: &FuncRef, body: &FuncRef, args: Vec<Value>) -> Result<Option<Vec<Slot>>> {
        let (mut values, mut left) = (args, self.rounds_told(body).unwrap_or(Dim::from(u64::MAX)));
        loop {
            let test = self.call_whole(cond, values.clone())?;
            let Some(test) = test.as_ref().and_then(|results| results.first()) else { return Ok(None) };
            let test = self.truth(test)?;
            let Some(goes_on) = self.known(&Value::Array(test)).and_then(|t| t.get_i64(0)) else { return Ok(None) };
            if goes_on == 0 || left == 0 {
                return Ok(Some(values.into_iter().map(Some).collect()));
            }
            if self.rounds_written == MOST_ROUNDS {
                return Ok(None);
            }
            (self.rounds_written, left) = (self.rounds_written + 1, left - 1);
            let count = values.len();
            match self.call_whole(body, values)? {
                Some(next) => values = next,
                None => return Ok(Some(vec![None; count])),
            }
        }
    }
}
