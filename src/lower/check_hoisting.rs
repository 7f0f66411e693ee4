//! Run-time checks inside of loops and branches, carried out of them to the entry, where a call can fail.
//!
//! A claim is a value of the computation in which it stands. Where that is the body of a loop, one more part of the state holds the most
//! that any round asked for; a branch leaves it as one more result, and the other branches leave 0. What a computation asks for is known
//! when it was lowered: one that asks for something is lowered again, with room for it.
use super::walker::Walker;
use crate::hlo::open::{Builder, Claim, ClaimQuantity, Shape};
use crate::ops::Value;
use crate::ops::spec::ValueSpec;
use crate::scalar::ScalarOp;
use crate::tensor::{DType, Tensor};

/// The specs of so many claims.
pub(super) fn specs(count: usize) -> Vec<ValueSpec> {
    vec![ValueSpec::Array(Shape::array(DType::S32, [])); count]
}

impl Walker<'_> {
    /// Runs `lowered` in a computation that was just opened and whose claims the caller carries out of it.
    pub fn carrying<T>(&mut self, lowered: impl FnOnce(&mut Self) -> T) -> T {
        let depth = self.b.depth();
        let before = self.b.carry(depth);
        if before + 1 != depth {
            // nor are they from where it was opened
            self.b.carry(before);
        }
        let made = lowered(self);
        self.b.carry(before);
        made
    }

    /// Initial values of `count` carried claims: zeros, as nothing was asked for yet.
    pub fn nothing_asked(&mut self, count: usize) -> Vec<Value> {
        (0..count).map(|_| Value::Array(self.b.constant(Tensor::scalar(0i32)))).collect()
    }

    /// The most that was asked for before and is by the open computation.
    pub fn most_asked(&mut self, before: &[Value]) -> Vec<Value> {
        let own = self.b.claims().to_vec();
        let mut most = Vec::with_capacity(own.len());
        for (claim, before) in own.iter().zip(before) {
            let Value::Array(before) = *before else { continue };
            most.push(Value::Array(self.b.binary(ScalarOp::Maximum, before, claim.value)));
        }
        most
    }

    /// Claims of a computation within as ones of the open computation, where they have these values.
    pub fn carry_out(&mut self, claims: &[Claim], values: &[Value]) {
        for (claim, value) in claims.iter().zip(values) {
            if let Value::Array(value) = *value {
                self.b.claim(Claim { value, ..claim.clone() });
            }
        }
    }
}

/// Makes one claim of the claims that are the same check of one node, as of the condition of a loop, which is checked in each round and
/// behind the last one.
pub(super) fn merge_checks(b: &mut Builder) {
    let mut merged: Vec<Claim> = Vec::new();
    for claim in b.take_claims(0) {
        let is_same = |other: &&mut Claim| other.node == claim.node && other.quantity == claim.quantity;
        match merged.iter_mut().find(is_same).filter(|_| matches!(claim.quantity, ClaimQuantity::Check(_))) {
            Some(first) => first.value = b.binary(ScalarOp::Maximum, first.value, claim.value),
            None => merged.push(claim),
        }
    }
    for claim in merged {
        b.claim(claim);
    }
}
