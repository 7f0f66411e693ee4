//! The content of one object: the functions of a model for some targets, over one state and one copy of the constants.
use super::self_test::SelfTest;
use super::{Callee, Kernel, Program, VariableSlot, WeightsFile, callees, most_host_arrays, rank_count, state};
use crate::target::{QuantizedProducts, RoundingCounts, Target};
use crate::tensor::Sizes;
use bytes::Bytes;
use foldhash::HashMap;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Bytes to which each constant is aligned.
const ALIGN: u64 = 64;

/// The interface of a model: what its callers see.
#[derive(Clone, Debug, Default)]
pub struct ModelInterface {
    /// The name in C; prefix of every symbol.
    pub name: String,
    /// The file that the model came from.
    pub source: String,
    /// The functions; never empty.
    pub entries: Vec<EntryPoint>,
    /// Variables that keep their values between calls; changed where a call of any function changes them.
    pub state: Vec<VariableSlot>,
    /// Bytes of all constants.
    pub weights_bytes: u64,
    /// The reduced precision that was requested.
    pub reduced: RoundingCounts,
    /// The products of quantised activations.
    pub quantized: Arc<QuantizedProducts>,
    /// The weights file that holds the constants, if they are not in the object.
    pub file: Option<WeightsFile>,
    /// The user's functions that the model calls, once for each set of shapes.
    pub calls: Vec<Callee>,
    /// Whether the model calls functions of the process that loads it.
    pub calls_host: bool,
    /// Number of ranks that run the model, each with a communicator; `None` if the model exchanges nothing with other ranks.
    pub ranks: Option<u32>,
    /// The model's self-test, if it has one.
    pub self_test: Option<Arc<SelfTest>>,
}

/// One function of a model as its callers see it.
#[derive(Clone, Debug, Default)]
pub struct EntryPoint {
    /// Name of the signature; that of the model if it has one function.
    pub name: String,
    /// Prefix of the function's types in C: `mnist_train` of `mnist_train_args`.
    pub prefix: String,
    /// The function's name in C: `mnist_train`, or `mnist_run` if the model has one function.
    pub function: String,
    /// Arguments, results, variables and sizes, without code; the largest sizes of all targets, and the bounds of those that vary.
    pub program: Program,
    /// The sizes that vary from call to call.
    pub sizes: Sizes,
    /// If sizes vary: size buckets, the smallest first. For each program of the function, the largest value of each size that the caller
    /// gives; a call runs the first program that its sizes fit into.
    pub rungs: Vec<Vec<u64>>,
}

impl EntryPoint {
    /// Number of programs that a target has for the function.
    pub fn program_count(&self) -> usize {
        self.rungs.len().max(1)
    }
    /// The index of the program that a call with these sizes runs: that of the smallest size bucket that fits.
    pub fn bucket_of_call(&self, given: &[u64]) -> usize {
        let holds = |most: &Vec<u64>| given.iter().zip(most).all(|(n, most)| n <= most);
        self.rungs.iter().position(holds).unwrap_or(self.program_count() - 1)
    }
}

impl ModelInterface {
    /// A model of one function.
    pub fn of_program(program: &Program) -> ModelInterface {
        let name = &program.name;
        let entry = EntryPoint {
            name: name.clone(),
            prefix: name.clone(),
            function: format!("{name}_run"),
            program: program.without_code(),
            ..EntryPoint::default()
        };
        ModelInterface {
            name: name.clone(),
            source: program.source.clone(),
            entries: vec![entry],
            state: program.state.clone(),
            weights_bytes: program.weights_bytes,
            reduced: program.reduced,
            quantized: program.quantized.clone(),
            file: None,
            calls: callees([program]),
            calls_host: most_host_arrays([program]).is_some(),
            ranks: rank_count([program]),
            self_test: None,
        }
    }
    /// Whether sizes of a function vary.
    pub fn has_variable_sizes(&self) -> bool {
        self.entries.iter().any(|e| !e.sizes.is_empty())
    }
    /// The indices, among a target's programs, of the programs of function number `entry`.
    pub fn program_indices(&self, entry: usize) -> Range<usize> {
        let from: usize = self.entries.iter().take(entry).map(EntryPoint::program_count).sum();
        from..from + self.entries.get(entry).map_or(0, EntryPoint::program_count)
    }
    /// The user's functions that the model calls, one for each prototype.
    pub fn prototypes(&self) -> Vec<&Callee> {
        let mut all: Vec<&Callee> = Vec::new();
        for callee in &self.calls {
            if !all.iter().any(|other| callee.matches_prototype(other)) {
                all.push(callee);
            }
        }
        all
    }
    /// Bytes of the state.
    pub fn state_bytes(&self) -> u64 {
        state::size_in_bytes(&self.state)
    }
    /// The most bytes of workspace that a call needs.
    pub fn workspace_bytes(&self) -> u64 {
        self.entries.iter().map(|e| e.program.workspace_bytes).max().unwrap_or(0)
    }
}

/// A part of the initial state, which is copied from the constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateInitializer {
    /// Offset of the first byte in the state.
    pub to: u64,
    /// Offset of the first byte in the constants.
    pub from: u64,
    /// Size of the part in bytes.
    pub bytes: u64,
}

/// A model that becomes one object.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The model's interface.
    pub face: ModelInterface,
    /// The loops of each function for each target, in the order in which the machine is tested for targets: [`EntryPoint::program_count`]
    /// programs for the first function, then those of the next. Programs have names of their own, with which internal symbols begin.
    pub variants: Vec<(Vec<Program>, Target)>,
    /// Constants by byte offset, in order, not overlapping.
    pub weights: Vec<(u64, Bytes)>,
    /// The initial values of the state that are not zero.
    pub starts: Vec<StateInitializer>,
}

/// Enables the features that a target's programs need and that not every machine with its instruction set has.
fn require_instructions(programs: &[Program], target: &mut Target) {
    let kernels = || programs.iter().flat_map(|program| program.kernels.values());
    for instruction in kernels().flat_map(Kernel::dot_instructions).collect::<BTreeSet<_>>() {
        target.enable_instruction(instruction);
    }
    kernels().flat_map(Kernel::tile_products).for_each(|product| target.enable_tiles(product));
}

impl Bundle {
    /// Creates the bundle of a model; its constants have no offsets yet.
    pub fn new(face: ModelInterface, mut variants: Vec<(Vec<Program>, Target)>) -> Bundle {
        for (programs, target) in &mut variants {
            require_instructions(programs, target);
        }
        Bundle { face, variants, weights: Vec::new(), starts: Vec::new() }
    }

    /// A model of one function for one target.
    pub fn of_program(program: &Program, target: &Target) -> Bundle {
        let variants = vec![(vec![program.clone()], target.clone())];
        Bundle { weights: program.weights.clone(), ..Bundle::new(ModelInterface::of_program(program), variants) }
    }

    /// Stores equal constants once, and adds the initial values of variables; `initial` has the bytes of each variable of the interface.
    pub fn with_shared_constants(self, initial: &[Bytes]) -> Bundle {
        let Bundle { face, mut variants, .. } = self;
        let mut pool = Pool::default();
        match &mut variants[..] {
            // as it was laid out
            [(programs, _)] if programs.len() == 1 => pool.take_constants(&programs[0]),
            all => all.iter_mut().flat_map(|v| &mut v.0).for_each(|program| pool.move_into(program)),
        }
        let zero = |bytes: &Bytes| bytes.iter().all(|&b| b == 0);
        let starts = face
            .state
            .iter()
            .zip(initial)
            .filter(|(_, value)| !zero(value))
            .map(|(v, value)| StateInitializer { to: v.offset, from: pool.add(value), bytes: value.len() as u64 });
        let starts = starts.collect();
        Bundle { face: ModelInterface { weights_bytes: pool.top, ..face }, variants, weights: pool.parts, starts }
    }
}

/// Pool of the constants of several programs; equal constants are stored once.
#[derive(Default)]
struct Pool {
    parts: Vec<(u64, Bytes)>,
    top: u64,
    known: HashMap<Bytes, u64>,
}

impl Pool {
    fn add(&mut self, bytes: &Bytes) -> u64 {
        *self.known.entry(bytes.clone()).or_insert_with(|| {
            let at = self.top.next_multiple_of(ALIGN);
            self.top = at + bytes.len() as u64;
            self.parts.push((at, bytes.clone()));
            at
        })
    }

    /// Takes over the constants of the first program at their offsets.
    fn take_constants(&mut self, program: &Program) {
        self.known.extend(program.weights.iter().map(|(at, bytes)| (bytes.clone(), *at)));
        (self.parts, self.top) = (program.weights.clone(), program.weights_bytes);
    }

    /// Moves the constants of a program into the pool.
    fn move_into(&mut self, program: &mut Program) {
        let places: Vec<u64> = program.weights.iter().map(|(_, bytes)| self.add(bytes)).collect();
        program.move_weights(&places);
    }
}
