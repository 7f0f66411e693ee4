//! Loops that are written round by round.
//!
//! A loop of HLO has arrays of fixed sizes. Where values say how large something in the body is (`Where`, suppression of boxes), and
//! the condition is known before each round, the rounds are written one behind the other into the entry computation, in which such
//! sizes may be.
use super::walker::{Slot, Walker};
use crate::diag::{Code, Error, Result};
use crate::graph::FuncRef;
use crate::ops::Value;

/// Most rounds that are written in a program, those of loops inside of loops counted each time: sizes that values say are compared with
/// one another, so that time grows faster than their number.
const MOST_ROUNDS: usize = 64;

impl Walker<'_> {
    /// The final values of a loop's variables: of a loop of HLO, or of written rounds where its body has sizes that values say.
    pub(super) fn while_loop(&mut self, cond: &FuncRef, body: &FuncRef, args: Vec<Value>) -> Result<Vec<Slot>> {
        if self.b.depth() > 1 {
            return self.one_loop(cond, body, args);
        }
        let before = (self.store.clone(), self.holders.clone(), self.ranges.clone());
        let errors = self.errors.len();
        let looped = self.one_loop(cond, body, args.clone());
        let of_sizes = |code: Code| code == Code::DynamicShape;
        let is_refused = match &looped {
            Err(Error::User(all)) => all.iter().any(|d| of_sizes(d.code)),
            _ => self.errors[errors..].iter().any(|d| of_sizes(d.code)),
        };
        if !is_refused {
            return looped;
        }
        let told = self.errors.split_off(errors);
        while self.b.depth() > 1 {
            self.b.abandon();
        }
        (self.store, self.holders, self.ranges) = before;
        match self.rounds(cond, body, args)? {
            Some(values) => Ok(values),
            None => {
                self.errors.truncate(errors);
                self.errors.extend(told);
                looped
            }
        }
    }

    /// The values after the last round; `None` where it is not known before each round whether there is one, or where there are too many.
    fn rounds(&mut self, cond: &FuncRef, body: &FuncRef, args: Vec<Value>) -> Result<Option<Vec<Slot>>> {
        let (mut values, mut left) = (args, self.rounds_told(body).unwrap_or(u64::MAX));
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
