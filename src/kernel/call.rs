//! Calls of what the object does not have: functions that the user writes in C, where a module has a `custom-call` of no known target,
//! and the communicator, where it has a collective ([`Exchange`]).
//!
//! The object has no body of them; its users link one. The header has the prototype, and what a function is told beside its arrays is a
//! constant of the object.
use super::exchange::Exchange;
use super::{BufId, Program, Step};
use crate::tensor::TensorInfo;

/// `API_VERSION_ORIGINAL`: the only version of XLA's call interface whose functions can't fail.
const WITHOUT_STATUS: u32 = 1;

/// A user's function as one call site uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callee {
    /// The name in C.
    pub name: String,
    /// XLA's version number of the call interface that the module names, 1 to 4.
    pub api_version: u32,
    /// Opaque bytes that the module passes to the function.
    pub opaque: Vec<u8>,
    /// The arrays that the function reads, as they lie in memory.
    pub args: Vec<TensorInfo>,
    /// The arrays that the function writes.
    pub results: Vec<TensorInfo>,
}

/// A function of the process that loads the code, which it finds by a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFunction {
    /// The name in the module.
    pub name: String,
    /// The number in the module's table of host calls.
    pub number: usize,
    /// The number of arrays that it reads and writes.
    pub arrays: usize,
}

/// The symbol of the function that calls host functions: it gets the number of the call, and a list of pointers to the arrays that are
/// read and then those that are written; it returns 0, or anything else where the call failed.
pub const HOST_CALL_SYMBOL: &str = "tfaot_host_call";

/// The target of a call.
#[derive(Clone, Debug)]
pub enum CallTarget {
    /// A function of the user.
    Function(Callee),
    /// A function of the process that loads the code.
    Host(HostFunction),
    /// An exchange with other ranks.
    Ranks(Exchange),
}

impl CallTarget {
    /// The name of the function, or of the kind of exchange.
    pub fn name(&self) -> &str {
        match self {
            CallTarget::Function(callee) => &callee.name,
            CallTarget::Host(function) => &function.name,
            CallTarget::Ranks(exchange) => exchange.movement.name(),
        }
    }
}

/// A call of a user's function, or an exchange with other ranks, as a step.
#[derive(Clone, Debug)]
pub struct Call {
    /// The function or exchange that is called.
    pub to: CallTarget,
    /// The arrays that the call reads.
    pub args: Vec<BufId>,
    /// Buffers that the results are written to.
    pub results: Vec<BufId>,
}

impl Callee {
    /// Whether the function returns a status.
    pub fn has_status(&self) -> bool {
        self.api_version > WITHOUT_STATUS
    }
    /// Whether one prototype fits both functions.
    pub fn matches_prototype(&self, other: &Callee) -> bool {
        let types = |all: &[TensorInfo]| all.iter().map(|t| t.dtype).collect::<Vec<_>>();
        self.name == other.name
            && self.has_status() == other.has_status()
            && types(&self.args) == types(&other.args)
            && types(&self.results) == types(&other.results)
    }
}

impl Call {
    /// The buffers that the call reads and writes.
    pub fn buffers(&self) -> impl Iterator<Item = BufId> + '_ {
        self.args.iter().chain(&self.results).copied()
    }
}

/// The functions that the steps of some programs call, each function with each shape once, in the order of the steps.
pub fn callees<'p>(programs: impl IntoIterator<Item = &'p Program>) -> Vec<Callee> {
    let mut all: Vec<Callee> = Vec::new();
    for program in programs {
        find_call(&program.steps, &mut |called| {
            match called {
                CallTarget::Function(callee) if !all.contains(callee) => all.push(callee.clone()),
                CallTarget::Function(_) | CallTarget::Host(_) | CallTarget::Ranks(_) => {}
            }
            None::<()>
        });
    }
    all
}

/// The most arrays of a call of a function of the process in some programs; `None` if there is no such call.
pub fn most_host_arrays<'p>(programs: impl IntoIterator<Item = &'p Program>) -> Option<usize> {
    let mut most = None;
    for program in programs {
        find_call(&program.steps, &mut |called| {
            if let CallTarget::Host(function) = called {
                most = most.max(Some(function.arrays));
            }
            None::<()>
        });
    }
    most
}

/// The first result of `f` on the calls in some steps, in their order.
pub fn find_call<'s, T>(steps: &'s [Step], f: &mut impl FnMut(&'s CallTarget) -> Option<T>) -> Option<T> {
    steps.iter().find_map(|step| match step {
        Step::Launch(_) => None,
        Step::Call(call) => f(&call.to),
        Step::While { cond, body, .. } => find_call(cond, f).or_else(|| find_call(body, f)),
        Step::Branch { branches: lists, .. } | Step::Together(lists) => {
            lists.iter().find_map(|list| find_call(list, f))
        }
    })
}
