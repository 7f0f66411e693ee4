//! HLO, XLA's high-level operations.
//!
//! A [`Module`] is a list of [`Computation`]s, one of them the entry. A computation is an arena of [`Inst`]ructions, each an
//! [`Op`] with operands and a result [`Shape`]. Operands need not precede their users in the arena: iterate over
//! [`Computation::post_order`]. Values are immutable; a pass adds new instructions and redirects users.
pub mod valid_sizes;
mod size_substitution;
pub mod attrs;
mod builder;
mod decision;
mod fold;
pub mod groups;
pub mod infer;
mod symbolic_arrays;
mod op;
pub mod symbolic;
pub mod proto;
mod data_sizes;
mod schema;
mod shape;
pub mod size;
pub mod sizes;
mod source;
pub mod stablehlo;
pub mod text;
pub mod verify;

pub use builder::{Builder, BuilderCheckpoint};
pub use data_sizes::{
    AssumedSizes, BoundCheck, CheckedQuantity, DataDependentSize, OwningComputation, RuntimeCheck, RuntimeChecks,
    SizeAssumptions, SizeEquality,
};
pub use fold::{Fold, is_neutral};
pub use op::{Arity, ElementMapping, Literal, Op};
pub use shape::{ArrayShape, Shape, XlaLayout};
pub use size::{SizeRepr, all_always_equal};
pub use size_substitution::SizeMapping;
pub use source::{Source, SourceContent, read};
pub use symbolic_arrays::SymbolicArray;

use crate::diag::{Code, Error, Result};
use crate::tensor::Tensor;
use crate::util::id_lists::IdLists;
use crate::util::id_vec::IdVec;
use std::sync::Arc;

crate::ids! {
    /// Id of an instruction in its computation.
    pub struct InstId;
    /// Id of a computation in its module.
    pub struct CompId;
}

/// The TensorFlow node that an instruction came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Name of the TensorFlow op.
    pub op_type: String,
    /// Name of the TensorFlow node.
    pub op_name: String,
}

/// Instruction of a computation.
#[derive(Clone, Debug, PartialEq)]
pub struct Inst<D: SizeRepr = u64> {
    /// The name, unique in the computation once printed.
    pub name: String,
    /// Operation, with its attributes.
    pub op: Op<D>,
    /// The operands, in the order of the opcode.
    pub operands: Vec<InstId>,
    /// Shape of the result.
    pub shape: Shape<D>,
    /// TensorFlow node that the instruction came from; instructions of one node share the metadata.
    pub metadata: Arc<Metadata>,
    /// Opaque attributes as text: sharding, backend_config, control-predecessors, operand_precision …
    pub extra: Vec<(String, String)>,
}

/// The users of each instruction of a computation.
pub type Users = IdLists<InstId, InstId>;
/// Uses of each instruction of a computation: the user, and the index of the operand.
pub type OperandUses = IdLists<InstId, (InstId, usize)>;

/// Function of values, a list of instructions.
#[derive(Clone, Debug, PartialEq)]
pub struct Computation<D: SizeRepr = u64> {
    /// The name, unique in the module.
    pub name: String,
    /// All instructions, dead ones included.
    pub insts: IdVec<InstId, Inst<D>>,
    /// Parameters in order.
    pub params: Vec<InstId>,
    /// Instruction that computes the result.
    pub root: InstId,
    /// Data-dependent sizes that values of the computation determine: integer scalars, with the numbers of the sizes in the
    /// module. Only used in a function that is lowered for some values of varying sizes.
    pub sizes: Vec<(usize, InstId)>,
    /// Constants whose elements vary with sizes, with the expressions of the elements; empty in a computation for fixed sizes.
    pub size_constants: Vec<(InstId, Vec<D::SignedSize>)>,
}

/// A program in HLO: computations, one of which is the entry.
///
/// ```
/// use tfaot::Module;
///
/// let text = "HloModule double\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] add(x, x)\n}\n";
/// let module: Module = text.parse()?;
/// assert_eq!(module.name, "double");
/// assert_eq!(module.to_string().parse::<Module>()?.to_string(), module.to_string());
/// # Ok::<(), tfaot::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Module<D: SizeRepr = u64> {
    /// Name of the module.
    pub name: String,
    /// Computations of the module.
    pub comps: IdVec<CompId, Computation<D>>,
    /// Computation that is run.
    pub entry: CompId,
    /// Opaque attributes of the header, as text.
    pub extra: Vec<(String, String)>,
    /// Whether the elements of its weights ([`Module::is_weight`]) may be replaced after compilation, so that no pass may read
    /// them.
    pub replaceable: bool,
}

impl<D: SizeRepr> Module<D> {
    /// Whether a constant is an array that may be replaced: floats, not a scalar.
    pub fn is_weight(&self, t: &Tensor) -> bool {
        self.replaceable && !t.dims.is_empty() && (t.dtype.is_float() || t.dtype.is_complex())
    }
    /// The entry computation.
    pub fn entry(&self) -> &Computation<D> {
        &self.comps[self.entry]
    }
    /// Numbers of replicas and of partitions per replica in the header; 1 if not given.
    pub fn devices(&self) -> [u64; 2] {
        ["replica_count", "num_partitions"].map(|name| {
            let text = self.extra.iter().find(|(n, _)| n == name);
            text.and_then(|(_, v)| v.trim().parse().ok()).unwrap_or(1)
        })
    }
    /// Rejects modules that need several devices, for callers that have one.
    ///
    /// Device groups are ignored: if the header has one replica and one partition, XLA runs the module on a single device as
    /// well, whatever other devices a collective names.
    ///
    /// # Errors
    /// `Code::SeveralDevices`.
    pub fn require_single_device(&self) -> Result<()> {
        let [replicas, partitions] = self.devices();
        if replicas <= 1 && partitions <= 1 {
            return Ok(());
        }
        let count = |n: u64, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
        let message = format!(
            "module `{}` is for {} with {} each, and one device runs a module here",
            self.name,
            count(replicas, "replica"),
            count(partitions, "partition")
        );
        Err(Error::user(Code::SeveralDevices, message))
    }
    /// The computations that the entry reaches, callees before callers.
    pub fn reachable(&self) -> Vec<CompId> {
        let callees = |id: CompId| -> Vec<CompId> {
            let called = self.comps[id].insts.values().flat_map(|inst| inst.op.called_computations());
            called.collect::<Vec<_>>().into_iter().rev().collect()
        };
        let (mut seen, mut out) = (vec![false; self.comps.len()], Vec::new());
        seen[self.entry.0 as usize] = true;
        // An explicit stack, as a text may contain a chain of calls of any length.
        let mut stack = vec![(self.entry, callees(self.entry))];
        while let Some((id, rest)) = stack.last_mut() {
            match rest.pop() {
                Some(callee) if std::mem::replace(&mut seen[callee.0 as usize], true) => {}
                Some(callee) => stack.push((callee, callees(callee))),
                None => {
                    out.push(*id);
                    stack.pop();
                }
            }
        }
        out
    }
}

impl<D: SizeRepr> Computation<D> {
    /// Whether two computations have the same instructions, none of them foreign.
    pub fn has_same_instructions(&self, other: &Computation<D>) -> bool {
        self.params == other.params
            && self.root == other.root
            && self.insts.len() == other.insts.len()
            && self.insts.values().zip(other.insts.values()).all(|(x, y)| {
                x.operands == y.operands && x.shape == y.shape && x.op == y.op && !matches!(x.op, Op::Foreign(_))
            })
    }
    /// The instructions that the root needs and all parameters, operands before users.
    pub fn post_order(&self) -> Vec<InstId> {
        self.post_order_to(self.root)
    }
    /// The instructions that `last` needs and all parameters, operands before users.
    pub fn post_order_to(&self, last: InstId) -> Vec<InstId> {
        self.post_order_from(self.params.iter().copied().chain([last]))
    }
    /// [`Computation::post_order`] with `first` and the instructions that they need before the others.
    pub fn post_order_with_first(&self, first: &[InstId]) -> Vec<InstId> {
        self.post_order_from(self.params.iter().chain(first).copied().chain([self.root]))
    }
    /// The given instructions and all that they need, operands before users.
    pub fn post_order_from(&self, starts: impl Iterator<Item = InstId>) -> Vec<InstId> {
        let mut state = vec![0u8; self.insts.len()];
        let mut out = Vec::with_capacity(self.insts.len());
        for start in starts {
            let mut stack = vec![(start, 0usize)];
            while let Some((id, next)) = stack.pop() {
                if next == 0 && std::mem::replace(&mut state[id.0 as usize], 1) != 0 {
                    continue;
                }
                match self.insts[id].operands.get(next) {
                    Some(&operand) => {
                        stack.push((id, next + 1));
                        if state[operand.0 as usize] == 0 {
                            stack.push((operand, 0));
                        }
                    }
                    None => out.push(id),
                }
            }
        }
        out
    }
    /// The users of each instruction among those of `post_order`; an instruction that uses a value twice is listed twice.
    pub fn users(&self) -> Users {
        let order = self.post_order();
        let pairs = order.iter().flat_map(|&id| self.insts[id].operands.iter().map(move |&operand| (operand, id)));
        IdLists::grouped(self.insts.len(), &pairs.collect::<Vec<_>>())
    }
    /// The uses of each instruction by those of `post_order`: the user, and which of its operands the instruction is.
    pub fn operand_uses(&self) -> OperandUses {
        let order = self.post_order();
        let pairs = order.iter().flat_map(|&id| {
            self.insts[id].operands.iter().enumerate().map(move |(number, &operand)| (operand, (id, number)))
        });
        IdLists::grouped(self.insts.len(), &pairs.collect::<Vec<_>>())
    }
    /// Whether the result is a tuple.
    pub fn returns_tuple(&self) -> bool {
        self.insts.get(self.root).is_some_and(|root| root.shape.as_tuple().is_some())
    }
    /// The array shape of `id`, which the verifier made sure is one.
    pub fn array_shape(&self, id: InstId) -> &ArrayShape<D> {
        self.insts[id].shape.as_array().expect("the verifier checked that this is an array")
    }
}

impl<D: SizeRepr> std::ops::Index<InstId> for Computation<D> {
    type Output = Inst<D>;
    fn index(&self, id: InstId) -> &Inst<D> {
        &self.insts[id]
    }
}
