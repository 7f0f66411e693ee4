//! TensorArrays and stacks during lowering. Ops change their elements through handles.
use super::Value;
use crate::diag::{Code, Error, Result};
use crate::util::id_vec::{Id, IdVec};

crate::ids! {
    /// A TensorArray or a stack.
    pub struct HolderId;
}

/// Kind of a holder: a TensorArray or a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HolderKind {
    /// A TensorArray.
    Array {
        /// Whether writes beyond the end make it grow.
        dynamic: bool,
        /// Whether a write adds to the element instead of replacing it, as in a TensorArray of gradients.
        adds: bool,
    },
    /// A stack.
    Stack,
}

/// The state of one TensorArray or stack.
#[derive(Clone, Debug)]
pub struct Holder {
    /// Name of the node that made it.
    pub name: String,
    /// Kind of the holder.
    pub kind: HolderKind,
    /// Elements, as a `Value::List` or `Value::UnshapedList`.
    pub elements: Value,
    /// TensorArrays of its gradients, each with the name of its gradient source.
    pub gradients: Vec<(String, HolderId)>,
}

/// All TensorArrays and stacks of a program.
#[derive(Clone, Debug, Default)]
pub struct Holders {
    all: IdVec<HolderId, Holder>,
}

impl Holders {
    /// Adds a TensorArray or stack; returns its id.
    pub fn add(&mut self, holder: Holder) -> HolderId {
        self.all.push(holder)
    }
    /// The TensorArray or stack with this id.
    ///
    /// # Errors
    /// `Code::TypeMismatch` if it was made by a loop or branch and is used outside of it.
    pub fn get(&self, id: HolderId) -> Result<&Holder> {
        self.all.get(id).ok_or_else(gone)
    }
    /// The TensorArray or stack with this id, mutable.
    ///
    /// # Errors
    /// Those of [`Self::get`].
    pub fn get_mut(&mut self, id: HolderId) -> Result<&mut Holder> {
        if id.index() < self.all.len() { Ok(&mut self.all[id]) } else { Err(gone()) }
    }
    /// Number of TensorArrays and stacks.
    pub fn len(&self) -> usize {
        self.all.len()
    }
    /// Whether there are no TensorArrays and stacks.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
    /// Drops all but the first `len`: at the end of a loop or branch, those made inside it.
    pub fn truncate(&mut self, len: usize) {
        if len < self.all.len() {
            self.all = std::mem::take(&mut self.all).into_iter().take(len).collect();
            for holder in self.all.values_mut() {
                holder.gradients.retain(|(_, id)| id.index() < len);
            }
        }
    }
    /// The TensorArray of gradients of `of` with this gradient source; one whose elements are `zeros` is made if there is none.
    ///
    /// # Errors
    /// Those of [`Self::get`], and `Code::TypeMismatch` for a stack.
    pub fn gradient(&mut self, of: HolderId, source: &str, zeros: Value) -> Result<HolderId> {
        let holder = self.get(of)?;
        if let Some((_, found)) = holder.gradients.iter().find(|(name, _)| name == source) {
            return Ok(*found);
        }
        let kind = match holder.kind {
            HolderKind::Array { dynamic, .. } => HolderKind::Array { dynamic, adds: true },
            HolderKind::Stack => return Err(Error::user(Code::TypeMismatch, "a stack has no gradients")),
        };
        let new = Holder { name: holder.name.clone(), kind, elements: zeros, gradients: Vec::new() };
        let id = self.add(new);
        self.get_mut(of)?.gradients.push((source.to_string(), id));
        Ok(id)
    }
}

fn gone() -> Error {
    Error::user(Code::TypeMismatch, "a TensorArray or stack that a loop or a branch made is used outside of it")
}
