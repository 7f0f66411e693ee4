//! Compilation of HLO to one object: every function of a model, for every target.
use super::buckets::{self, Bucket};
use super::{Built, optimize_for};
use crate::codegen::{self, Launches, Object, StackDepths};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::dump::Dump;
use crate::hlo::{Literal, Module};
use crate::kernel::self_test::SelfTest;
use crate::kernel::state::lay_out_variables;
use crate::kernel::{self, Bundle, EntryPoint, ModelInterface, PaddedOffsets, WeightsLayout};
use crate::lower::{ElementCountSource, Lowered, StateVariable};
use crate::package::names;
use crate::schedule::{KernelTarget, PackedConstants};
use crate::target::{CodeRequest, PanelSizes, QuantizedProducts, RoundingCounts, Target};
use crate::tensor::{DType, Size, Sizes, Tensor, TensorInfo};
use crate::util::pieces::Pieces;
use crate::{interp, schedule};
use bytes::Bytes;
use std::sync::Arc;

/// Functions that are compiled into one object. All functions have the same variables.
#[derive(Clone, Debug)]
pub struct Functions {
    /// Functions with the names of their signatures.
    pub all: Vec<(String, Lowered)>,
    /// Function without arguments and results that initializes the variables without a value in the file.
    pub init: Option<Lowered>,
}

/// A compiled model.
#[derive(Debug)]
pub struct Compiled {
    /// Optimized HLO of each function.
    pub modules: Vec<Module>,
    /// Interface that callers see, and the scheduled kernels.
    pub bundle: Bundle,
    /// Machine code.
    pub object: Object,
}

impl Compiled {
    /// Returns the only function for the only target.
    ///
    /// # Errors
    /// Internal if there is none.
    pub fn into_only_program(self) -> Result<Built> {
        let last = self.bundle.face.entries.first().map_or(0, |entry| entry.program_count() - 1);
        self.program(last)
    }

    /// Returns the only function for the only target, with the program of the size bucket that serves the sizes `given`.
    ///
    /// # Errors
    /// Internal if there is none.
    pub fn into_program_for_sizes(self, given: &[u64]) -> Result<Built> {
        let bucket = self.bundle.face.entries.first().map_or(0, |entry| entry.bucket_of_call(given));
        self.program(bucket)
    }

    fn program(mut self, bucket: usize) -> Result<Built> {
        let program = self.bundle.variants.pop().and_then(|(mut programs, _)| programs.drain(..).nth(bucket));
        match (self.modules.pop(), program) {
            (Some(module), Some(program)) => Ok(Built { module, program, object: self.object }),
            _ => Err(Error::internal("compile", "there is no function")),
        }
    }

    /// All programs with their targets.
    pub fn programs(&self) -> Vec<(kernel::Program, Target)> {
        let all = self.bundle.variants.iter();
        all.flat_map(|(programs, target)| programs.iter().map(|p| (p.clone(), target.clone()))).collect()
    }
}

/// Compiles functions to machine code for targets of one architecture, with one precision; a call uses the newest instruction set of
/// `requests` that the machine has. `dumps`, one for each function or none, write the dumps that XLA's flags request.
///
/// A single function is called `NAME_run`; each of several is called `NAME_` with its signature's name.
///
/// # Errors
/// Errors of every step from HLO to the object.
pub fn build_functions(
    functions: Functions,
    name: &str,
    source: &str,
    requests: &[CodeRequest],
    launches: Launches,
    dumps: &mut [Option<Dump>],
) -> Result<Compiled> {
    let outputs = BuildOutputs { launches: Some(launches), self_test: None };
    build_outputs(functions, name, source, requests, outputs, dumps)
}

/// Optional parts of an object.
#[derive(Debug)]
pub struct BuildOutputs {
    /// How machine code starts kernels; `None` for back ends without machine code, for which the object is empty.
    pub launches: Option<Launches>,
    /// Calls of the self-test.
    pub self_test: Option<SelfTest>,
}

/// Compiles functions as [`build_functions`] does, with a choice of the optional parts.
///
/// # Errors
/// Errors of every step from HLO to the object; `Code::SeveralDevices` for the self-test of a model that several ranks run.
pub fn build_outputs(
    functions: Functions,
    name: &str,
    source: &str,
    requests: &[CodeRequest],
    outputs: BuildOutputs,
    dumps: &mut [Option<Dump>],
) -> Result<Compiled> {
    let (modules, mut bundle) = plan_all(functions, name, source, requests, dumps)?;
    if outputs.self_test.is_some() && bundle.face.ranks.is_some() {
        let told = "a self-test runs alone, and the model is run by several ranks together";
        return Err(Diagnostic::new(Code::SeveralDevices, told).help("compile it without --self-test").into());
    }
    bundle.face.self_test = outputs.self_test.map(Arc::new);
    let object = match outputs.launches {
        Some(launches) => codegen::compile_bundle(&bundle, launches)?,
        None => Object { content: Pieces::default(), stack: StackDepths::default() },
    };
    Ok(Compiled { modules, bundle, object })
}

/// Optimized modules, and scheduled kernels with all constants.
fn plan_all(
    functions: Functions,
    name: &str,
    source: &str,
    requests: &[CodeRequest],
    dumps: &mut [Option<Dump>],
) -> Result<(Vec<Module>, Bundle)> {
    let scheduled = Scheduled::of(functions, name, source, requests, dumps)?;
    let (is_in_file, bundle) = (scheduled.is_in_file(), Bundle::new(scheduled.face, scheduled.variants));
    let bundle = match is_in_file {
        true => bundle.with_weights_in_file(&scheduled.initial, None)?,
        false => bundle.with_shared_constants(&scheduled.initial),
    };
    Ok((scheduled.modules, bundle))
}

/// Lays out the constants of functions for the weights file of an existing object, with the layout `places`; compiles no code.
///
/// # Errors
/// Errors of [`build_functions`] except those of code generation; `Code::OtherWeights` if the object has other functions.
pub fn plan_weights(
    functions: Functions,
    name: &str,
    requests: &[CodeRequest],
    places: &WeightsLayout,
) -> Result<Bundle> {
    let scheduled = Scheduled::of(functions, name, "", requests, &mut [])?;
    Bundle::new(scheduled.face, scheduled.variants).with_weights_in_file(&scheduled.initial, Some(places))
}

/// Marks the weights of functions as replaceable after compilation; the compiled object then reads them from a file.
pub fn make_weights_replaceable(functions: &mut Functions) {
    for (_, lowered) in &mut functions.all {
        lowered.module.replaceable = true;
        if let Some(sized) = &mut lowered.size_variants {
            Arc::make_mut(sized).smaller.iter_mut().for_each(|bucket| bucket.module.replaceable = true);
        }
    }
}

/// Scheduled kernels of all functions for all targets, before constants are laid out.
struct Scheduled {
    modules: Vec<Module>,
    face: ModelInterface,
    variants: Vec<(Vec<kernel::Program>, Target)>,
    /// Initial values of the variables.
    initial: Vec<Bytes>,
}

impl Scheduled {
    fn is_in_file(&self) -> bool {
        self.modules.iter().any(|module| module.replaceable)
    }

    fn of(
        functions: Functions,
        name: &str,
        source: &str,
        requests: &[CodeRequest],
        dumps: &mut [Option<Dump>],
    ) -> Result<Scheduled> {
        let initial = initial_values(&functions)?.into_iter().map(|t| t.bytes).collect();
        let Functions { mut all, .. } = functions;
        share_fields(&mut all)?;
        let precision = requests.first().map(|r| r.precision).unwrap_or_default();
        let mut reduced = RoundingCounts { precision, ..RoundingCounts::default() };
        let mut quantized = QuantizedProducts::default();
        let mut own = None;
        for (i, (_, lowered)) in all.iter_mut().enumerate() {
            let dump = dumps.get_mut(i).unwrap_or(&mut own);
            let (own_reduced, own_quantized) = optimize_for(&mut lowered.module, requests, dump)?;
            reduced.add(&own_reduced);
            quantized.add(own_quantized);
        }
        let mut requests = requests.to_vec();
        requests.sort_by_key(|r| std::cmp::Reverse(r.instruction_set_order()));
        let scheduler = Scheduler {
            requests: &requests,
            name,
            source,
            reduced,
            quantized: quantized.into(),
            packings: PackedConstants::default(),
        };
        let mut variants: Vec<(Vec<kernel::Program>, Target)> =
            requests.iter().map(|r| (Vec::new(), r.target.clone())).collect();
        let mut bounds = Vec::new();
        for (i, (_, lowered)) in all.iter().enumerate() {
            let function = if all.len() == 1 { String::new() } else { format!(".{i}") };
            let buckets = scheduler.buckets(lowered, &function)?;
            bounds.push(match lowered.size_variants {
                Some(_) => buckets.iter().map(|bucket| bucket.most.clone()).collect(),
                None => Vec::new(),
            });
            for (own, (all, _)) in programs_by_target(buckets).zip(&mut variants) {
                all.extend(own);
            }
        }
        let face = face(name, source, &all, &bounds, &variants);
        let modules = all.into_iter().map(|(_, lowered)| lowered.module).collect();
        Ok(Scheduled { modules, face, variants, initial })
    }
}

/// Interface of a model as callers see it, with the largest workspace over all targets.
fn face(
    name: &str,
    source: &str,
    all: &[(String, Lowered)],
    bounds: &[Vec<Vec<u64>>],
    variants: &[(Vec<kernel::Program>, Target)],
) -> ModelInterface {
    let signatures: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    let suffixes = names::function_suffixes(&signatures);
    let mut from = 0;
    let entry = |(i, (signature, lowered)): (usize, &(String, Lowered))| {
        let (prefix, function) = match all.len() {
            1 => (name.to_string(), format!("{name}_run")),
            _ => (format!("{name}_{}", suffixes[i]), format!("{name}_{}", suffixes[i])),
        };
        let sizes = lowered.size_variants.as_ref().map(|s| s.sizes.clone()).unwrap_or_default();
        let own = from..from + bounds[i].len().max(1);
        from = own.end;
        let each = || variants.iter().filter_map(|(programs, _)| programs.get(own.clone())).flatten();
        let workspace = |p: &kernel::Program| match sizes.is_empty() {
            true => p.workspace_bytes,
            false => PaddedOffsets::of_program(&sizes, p).bytes,
        };
        let program = kernel::Program {
            name: prefix.clone(),
            args: lowered.args.clone(),
            results: lowered.results.clone(),
            workspace_bytes: each().map(workspace).max().unwrap_or(0),
            flops: each().map(|p| p.flops).max().unwrap_or(0),
            ..each().next().map(kernel::Program::without_code).unwrap_or_default()
        };
        EntryPoint { name: signature.to_string(), prefix, function, program, sizes, rungs: bounds[i].clone() }
    };
    let entries: Vec<EntryPoint> = all.iter().enumerate().map(entry).collect();
    let first = entries.first().map(|e| e.program.clone()).unwrap_or_default();
    let mut state = first.state;
    for v in entries.iter().flat_map(|e| e.program.state.iter().filter(|v| v.changed)) {
        state.iter_mut().filter(|s| s.offset == v.offset && s.info == v.info).for_each(|s| s.changed = true);
    }
    ModelInterface {
        name: name.to_string(),
        source: source.to_string(),
        entries,
        state,
        weights_bytes: 0,
        reduced: first.reduced,
        quantized: first.quantized,
        file: None,
        calls: kernel::callees(variants.iter().flat_map(|(programs, _)| programs)),
        calls_host: kernel::most_host_arrays(variants.iter().flat_map(|(programs, _)| programs)).is_some(),
        ranks: kernel::rank_count(variants.iter().flat_map(|(programs, _)| programs)),
        self_test: None,
    }
}

/// Inputs of scheduling that all functions of a model share.
struct Scheduler<'a> {
    /// Requests, newest instruction set first.
    requests: &'a [CodeRequest],
    name: &'a str,
    source: &'a str,
    reduced: RoundingCounts,
    quantized: Arc<QuantizedProducts>,
    packings: PackedConstants,
}

impl Scheduler<'_> {
    /// Schedules the size buckets of a function (a single one for fixed sizes); `function` becomes part of the programs' names.
    fn buckets(&self, lowered: &Lowered, function: &str) -> Result<Vec<Bucket>> {
        let differ = self.requests.windows(2).any(|pair| pair[0].target.vector_bits != pair[1].target.vector_bits);
        let mut panels = PanelSizes::empty(differ);
        match &lowered.size_variants {
            None => Ok(vec![Bucket { most: Vec::new(), programs: self.programs(lowered, function, &mut panels)? }]),
            Some(sized) => buckets::choose_buckets(lowered, sized, self.requests, &mut |bound, name| {
                self.programs(bound, &format!("{function}.{name}"), &mut panels)
            }),
        }
    }

    /// Schedules a function for each target. Weights are packed in the panel sizes of earlier targets where possible, so that constants are
    /// shared; new panel sizes are added to `panels`.
    fn programs(&self, lowered: &Lowered, name: &str, panels: &mut PanelSizes) -> Result<Vec<kernel::Program>> {
        let mut programs = Vec::with_capacity(self.requests.len());
        for request in self.requests {
            let own = match self.requests.len() {
                1 => format!("{}{name}", self.name),
                _ => format!("{}_{}{name}", self.name, names::identifier(&request.target.cpu)),
            };
            let target = KernelTarget { request, panels };
            let program = schedule::build_with_packings(lowered, &own, self.source, target, &self.packings)?;
            for product in program.kernels.values().filter_map(|k| k.product_choice()) {
                panels.add(&product.form, product.panels);
            }
            programs.push(kernel::Program { reduced: self.reduced, quantized: self.quantized.clone(), ..program });
        }
        Ok(programs)
    }
}

/// Programs of all buckets for each target, from programs for all targets of each bucket.
fn programs_by_target(buckets: Vec<Bucket>) -> impl Iterator<Item = Vec<kernel::Program>> {
    let mut each: Vec<_> = buckets.into_iter().map(|bucket| bucket.programs.into_iter()).collect();
    std::iter::from_fn(move || {
        let one: Vec<kernel::Program> = each.iter_mut().filter_map(Iterator::next).collect();
        (!one.is_empty()).then_some(one)
    })
}

/// Converts a function with dynamic sizes to one of fixed sizes, its upper bounds, with additional arguments and results for the actual sizes.
/// Any other function is returned unchanged.
pub fn function_at_bounds(lowered: Lowered) -> Lowered {
    let Some(sized) = &lowered.size_variants else { return lowered };
    let most: Vec<u64> = sized.sizes.all.iter().map(|s| s.most).collect();
    let whole: Vec<Vec<u64>> = lowered.results.iter().map(|r| r.dims.clone()).collect();
    with_size_parameters(&lowered, &sized.sizes, &most, &whole, lowered.module.clone())
}

/// Function of fixed sizes `most` whose additional arguments and results, behind those that callers see, hold the actual sizes.
pub fn with_size_parameters(
    lowered: &Lowered,
    sizes: &Sizes,
    most: &[u64],
    results: &[Vec<u64>],
    module: Module,
) -> Lowered {
    let number = |size: &Size| TensorInfo {
        name: size.name.clone(),
        called: None,
        field: format!("size_{}", size.name),
        dtype: DType::S32,
        dims: Vec::new(),
    };
    let (given, found) = sizes.all.split_at(sizes.caller_size_count());
    let used = |axes: &Vec<Option<usize>>| {
        let size = |s: usize| match s.checked_sub(given.len()) {
            None => ElementCountSource::Parameter(lowered.args.len() + s),
            Some(s) => ElementCountSource::Part(lowered.results.len() + s),
        };
        axes.iter().map(|axis| axis.map(size)).collect()
    };
    let arg = |(info, axes): (&TensorInfo, &Vec<Option<usize>>)| TensorInfo {
        dims: Sizes::actual_dims(axes, &info.dims, most),
        ..info.clone()
    };
    let result = |(info, dims): (&TensorInfo, &Vec<u64>)| TensorInfo { dims: dims.clone(), ..info.clone() };
    Lowered {
        bound_checks: Vec::new(),
        module,
        args: lowered.args.iter().zip(&sizes.args).map(arg).chain(given.iter().map(number)).collect(),
        results: lowered.results.iter().zip(results).map(result).chain(found.iter().map(number)).collect(),
        state: lowered.state.clone(),
        data_sizes: Vec::new(),
        result_counts: sizes.results.iter().map(used).collect(),
        size_variants: None,
    }
}

/// Gives variables the same C names in all functions. Errors: internal if functions have different variables.
fn share_fields(all: &mut [(String, Lowered)]) -> Result<()> {
    let Some((_, first)) = all.first() else { return Err(Error::internal("compile", "there is no function")) };
    let mut infos: Vec<TensorInfo> = first.state.iter().map(|v| v.info.clone()).collect();
    names::make_names_unique(&mut infos);
    for (_, lowered) in all {
        let same = |v: &StateVariable, info: &TensorInfo| v.info.name == info.name && v.info.bytes() == info.bytes();
        if lowered.state.len() != infos.len() || !lowered.state.iter().zip(&infos).all(|(v, info)| same(v, info)) {
            return Err(Error::internal("compile", "functions have different variables"));
        }
        lowered.state.iter_mut().zip(&infos).for_each(|(v, info)| v.info = info.clone());
    }
    Ok(())
}

/// Initial values of variables: those in the file, with those that `init` computes; 0 for variables that have neither.
///
/// # Errors
/// Errors of evaluating `init`.
pub fn initial_values(functions: &Functions) -> Result<Vec<Tensor>> {
    let state = functions.all.first().map_or(&[][..], |(_, lowered)| &lowered.state);
    let zeros = |v: &StateVariable| Tensor::new(v.info.dtype, v.info.dims.clone(), vec![0; v.info.bytes() as usize]);
    let mut values: Vec<Tensor> = state.iter().map(|v| v.initial.clone().unwrap_or_else(|| zeros(v))).collect();
    if let Some(init) = &functions.init {
        let given: Vec<Literal> = values.iter().cloned().map(Literal::Array).collect();
        let made = interp::evaluate(&init.module, init.module.entry, &given)?;
        let mut made = made.leaves().into_iter().cloned();
        for (value, v) in values.iter_mut().zip(&init.state).filter(|(_, v)| v.changed) {
            let none = || Error::internal("compile", format!("`{}` gets no value", v.info.name));
            *value = made.next().ok_or_else(none)?;
        }
    }
    Ok(values)
}

/// Layout of the variables in the state of an object.
pub fn variable_slots(state: &[StateVariable]) -> Vec<kernel::VariableSlot> {
    lay_out_variables(state.iter().map(|v| (v.info.clone(), v.changed)))
}
