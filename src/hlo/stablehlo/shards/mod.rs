//! Programs whose arrays are divided among devices (`sharding.rs`), as the program of one device of all that run it.
//!
//! Arguments and results are the device's shards. Code in `sdy.manual_computation`, which JAX's `shard_map` and `pmap` export, or
//! between the older calls `SPMDFullToShardShape` and `SPMDShardToFullShape`, computes on shards as it is written. Elsewhere, operations
//! compute on shards where the shardings of their operands fit (`local.rs`); any other operation gets whole arrays, which are gathered
//! from the devices first, so that every device computes the same. Results are right for any sharding, as each value is either the same
//! on all devices or a shard whose sharding is recorded here.
mod collectives;
mod local;
mod one_device;
mod partitioned_callback;
mod sharding;

use super::converter::{Converter, SymbolScope, error_at};
use super::tree::{FuncOp, FuncPort, MlirAttr, ModuleTree, Operation, RegionBlock, ValueRef};
use crate::diag::{Code, Error, Result};
use crate::hlo::{InstId, Module, Shape, symbolic};
use crate::symbolic::constant_dims;
use crate::tensor::{DType, Tensor};
use partitioned_callback::is_partitioned_callback;
use sharding::Sharding;
pub(super) use sharding::{Mesh, Meshes};

/// Cast between the types of two dialects, which are the same here.
pub(super) const CAST: &str = "builtin.unrealized_conversion_cast";

/// Operations that state the sharding of an array.
const SHARDING_CONSTRAINTS: &[&str] = &["sdy.sharding_constraint", "sdy.reshard", "sdy.propagation_barrier"];

/// Names of the attribute that states the sharding of an argument or a result.
const SHARDING_ATTRIBUTES: &[&str] = &["sdy.sharding", "mhlo.sharding"];

/// The header's attribute of a module that holds shardings, and its entries.
const FRONTEND: &str = "frontend_attributes";
const ARGUMENTS: &str = "spmd_parameters_shardings";
const RESULTS: &str = "spmd_output_sharding";

/// HLO's sharding of arrays that a program divides manually.
const MANUAL: &str = "{manual}";

/// Part of an array that a device has.
#[derive(Clone, Debug)]
pub(super) struct Shard {
    sharding: Sharding,
    /// Sizes of the whole array.
    whole: Vec<u64>,
}

/// Shardings of the arguments and results of the program of one device, in HLO's notation.
#[derive(Default)]
pub(super) struct ProgramShardings {
    /// Sharding of each argument.
    pub arguments: Vec<String>,
    /// Sharding of each result.
    pub results: Vec<String>,
}

impl ProgramShardings {
    /// The attribute of a module's header that holds the shardings: its name and its text.
    pub fn to_header_attribute(&self) -> (String, String) {
        let [arguments, results] = [&self.arguments, &self.results].map(|all| all.join(", "));
        (FRONTEND.to_string(), format!("{{{ARGUMENTS}=\"{arguments}\",{RESULTS}=\"{results}\"}}"))
    }

    /// The shardings that the header of a module holds; `None` where there are none.
    pub fn of_module(module: &Module) -> Option<ProgramShardings> {
        let (_, text) = module.extra.iter().find(|(name, _)| name == FRONTEND)?;
        let list = |name: &str| {
            let (_, rest) = text.split_once(&format!("{name}=\""))?;
            let (list, _) = rest.split_once('"')?;
            Some(braced_items(list))
        };
        Some(ProgramShardings { arguments: list(ARGUMENTS)?, results: list(RESULTS)? })
    }
}

fn target(op: &Operation) -> Option<&str> {
    match op.attr(&["call_target_name", "callee"]) {
        Some(MlirAttr::Symbol(name) | MlirAttr::Text(name)) => Some(name),
        _ => None,
    }
}

/// The items of a list of texts in braces, such as `{replicated}, {devices=[2]0,1 last_tile_dims={unreduced}}`.
fn braced_items(list: &str) -> Vec<String> {
    let (mut items, mut depth) = (vec![String::new()], 0);
    for c in list.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match (c, depth) {
            (',', 0) => items.push(String::new()),
            _ => items.iter_mut().last().into_iter().for_each(|item| item.push(c)),
        }
    }
    items.iter().map(|item| item.trim().to_string()).filter(|item| !item.is_empty()).collect()
}

/// Whether an operation takes shards as they are: it states a sharding, is a manual computation, or calls a function, which is inlined then.
fn takes_shards(op: &Operation) -> bool {
    let is_hint = matches!(target(op), Some("Sharding" | "SPMDFullToShardShape" | "SPMDShardToFullShape"));
    let name = op.name.as_str();
    matches!(name, "sdy.manual_computation" | "call" | "func.call" | CAST)
        || SHARDING_CONSTRAINTS.contains(&name)
        || (op.name == "stablehlo.custom_call" && is_hint)
}

/// Sharding in the text of an attribute, of an array of this rank; the whole array where it is divided manually. Where `only` names axes
/// of the mesh, the array is whole along the others.
///
/// # Errors
/// `Code::HloUnsupported` for shardings that are not known, and for those over other devices than the module's.
fn parse_sharding(functions: &ModuleTree, text: &str, only: Option<&[String]>, rank: usize) -> Result<Sharding> {
    let count = functions.partition_count();
    if text == MANUAL {
        return Ok(Sharding::replicated(rank, count));
    }
    let found = match text.contains('@') {
        true => Sharding::parse_shardy(text, &functions.meshes, only),
        false => Sharding::parse_hlo(text, rank, count),
    };
    match found.filter(|found| found.parts.len() == rank) {
        Some(found) if found.is_replicated() => Ok(Sharding::replicated(rank, count)),
        Some(_) if functions.replica_count() > 1 => {
            Err(Error::user(Code::HloUnsupported, "arrays are divided among the partitions of several replicas"))
        }
        Some(found) if found.device_count() == count => Ok(found),
        Some(found) => {
            let told =
                format!("an array is divided among {} devices, and the module is for {count}", found.device_count());
            Err(Error::user(Code::HloUnsupported, told))
        }
        None => Err(Error::user(Code::HloUnsupported, format!("the sharding `{text}` is not known"))),
    }
}

/// Sharding that the attributes of an argument or a result state; `None` where they state none.
fn stated_sharding(functions: &ModuleTree, port: &FuncPort, rank: usize) -> Result<Option<Sharding>> {
    let text = SHARDING_ATTRIBUTES.iter().find_map(|name| port.text(name));
    text.map(|text| parse_sharding(functions, text, None, rank)).transpose()
}

/// The texts of the shardings in a list such as `[<@mesh, [{"i"}]>, <@mesh, [{}]>]`.
fn sharding_texts(op: &Operation, name: &str) -> Vec<String> {
    let Some(MlirAttr::Text(text)) = op.attr(&[name]) else { return Vec::new() };
    text.split("<@").skip(1).filter_map(|part| Some(format!("<@{}>", part.split_once('>')?.0))).collect()
}

/// Axes of the mesh along which a computation divides arrays manually.
fn manual_axes(op: &Operation) -> Vec<String> {
    let Some(MlirAttr::Text(text)) = op.attr(&["manual_axes"]) else { return Vec::new() };
    let names = text.trim().trim_matches(['{', '}']).split(',').map(|name| name.trim().trim_matches('"').to_string());
    names.filter(|name| !name.is_empty()).collect()
}

/// Sharding of an entry argument: what its attributes state, or else what the first manual computation that reads it wants; `None`
/// where it is whole.
///
/// # Errors
/// `Code::HloUnsupported` for shardings that are not known, and for sizes that do not divide evenly.
pub(super) fn argument_shard(
    functions: &ModuleTree,
    function: &FuncOp,
    i: usize,
    dims: &[u64],
) -> Result<Option<Shard>> {
    let (name, port) = (&function.body.args[i].0, &function.args[i]);
    let sharding = match stated_sharding(functions, port, dims.len())? {
        Some(stated) => Some(stated),
        None => wanted_sharding(functions, function, name, dims.len())?,
    };
    let Some(sharding) = sharding.filter(|s| !s.is_replicated()) else { return Ok(None) };
    match sharding.part_dims(dims) {
        Some(_) => Ok(Some(Shard { sharding, whole: dims.to_vec() })),
        None => Err(uneven_error(&sharding, dims)),
    }
}

fn uneven_error(sharding: &Sharding, dims: &[u64]) -> Error {
    Error::user(
        Code::HloUnsupported,
        format!("an array of sizes {dims:?} is not divided evenly by the sharding `{sharding}`"),
    )
}

/// Sharding that the first manual computation which reads an argument states for it.
fn wanted_sharding(functions: &ModuleTree, function: &FuncOp, name: &str, rank: usize) -> Result<Option<Sharding>> {
    let mut names = vec![name];
    for op in &function.body.ops {
        let is_arg = |v: &ValueRef| names.contains(&v.name.as_str());
        let Some(at) = op.operands.iter().position(is_arg) else { continue };
        match op.name.as_str() {
            CAST => names.extend(op.results.first().map(String::as_str)),
            "sdy.manual_computation" => {
                let (all, manual) = (sharding_texts(op, "in_shardings"), manual_axes(op));
                return all.get(at).map(|text| parse_sharding(functions, text, Some(&manual), rank)).transpose();
            }
            "stablehlo.custom_call" if target(op) == Some("Sharding") => {
                return match op.attr(SHARDING_ATTRIBUTES) {
                    Some(MlirAttr::Text(text)) => parse_sharding(functions, text, None, rank).map(Some),
                    _ => Ok(None),
                };
            }
            _ => {}
        }
    }
    Ok(None)
}

impl Shard {
    /// Sizes of the part.
    pub fn dims(&self) -> Vec<u64> {
        self.sharding.part_dims(&self.whole).unwrap_or_default()
    }
}

impl<'a> Converter<'a, '_> {
    /// Records that `id` is a shard.
    pub(super) fn mark_shard(&mut self, id: InstId, shard: Shard) {
        let depth = self.builder().nesting_depth();
        self.shards.insert((depth, id), shard);
    }

    /// Whether one of these values of the current computation is a shard.
    pub(super) fn has_shards(&mut self, ids: &[InstId]) -> bool {
        ids.iter().any(|&id| self.shard(id).is_some())
    }

    /// Shard of an array that a value of the current computation is; `None` for whole arrays.
    fn shard(&mut self, id: InstId) -> Option<Shard> {
        let depth = self.builder().nesting_depth();
        self.shards.get(&(depth, id)).cloned()
    }

    /// Sharding in the text of an attribute, of an array of this rank, with copies in the order of device classes.
    ///
    /// # Errors
    /// Errors of [`parse_sharding`]; `Code::HloUnsupported` for axes that are divided manually.
    fn sharding(&self, text: &str, only: Option<&[String]>, rank: usize) -> Result<Sharding> {
        let found = parse_sharding(self.functions, text, only, rank)?;
        let told = || format!("the sharding `{text}` divides arrays along axes that are divided manually");
        found
            .with_copies_ordered_by_device_class(&self.device_classes)
            .ok_or_else(|| Error::user(Code::HloUnsupported, told()))
    }

    /// Sizes of an array whose sharding depends on them: they are fixed from then on.
    fn pinned_dims(&mut self, id: InstId) -> Vec<u64> {
        let shape = self.builder().shape(id).pin_sizes();
        shape.as_array().map(|array| array.dims.clone()).unwrap_or_default()
    }

    /// The operands of an operation that is not converted on shards: whole arrays, but where it takes shards as they are.
    ///
    /// # Errors
    /// `Code::HloUnsupported` for partitioned callbacks that would get other parts of arrays than devices have.
    pub(super) fn operands_of(&mut self, op: &Operation, operands: Vec<InstId>) -> Result<Vec<InstId>> {
        if takes_shards(op) {
            return Ok(operands);
        }
        if is_partitioned_callback(op) {
            return self.partitioned_callback_operands(op, &operands);
        }
        let depth = self.builder().nesting_depth();
        let whole = self.gather_whole_arrays(&operands);
        self.gathered
            .extend(whole.iter().zip(&operands).filter(|(whole, own)| whole != own).map(|(&id, _)| (depth, id)));
        Ok(whole)
    }

    /// The whole arrays of values, gathered from all devices where they are shards.
    pub(super) fn gather_whole_arrays(&mut self, ids: &[InstId]) -> Vec<InstId> {
        ids.iter().map(|&id| self.gather_whole_array(id)).collect()
    }

    fn gather_whole_array(&mut self, id: InstId) -> InstId {
        let mut x = self.complete_sums(id);
        let Some(Shard { sharding, .. }) = self.shard(x) else { return x };
        for dim in (0..sharding.parts.len()).filter(|&dim| sharding.parts[dim] > 1) {
            x = self.all_gather(x, dim, &sharding);
        }
        x
    }

    /// The part of a whole array that this device has under a sharding.
    fn part_of(&mut self, x: InstId, sharding: &Sharding) -> Option<InstId> {
        let part = sharding.part_dims(&self.pinned_dims(x))?;
        let mut operands = vec![x];
        for (dim, size) in part.iter().enumerate() {
            let starts: Vec<i64> = sharding.part_indices(dim).iter().map(|&i| (i * size) as i64).collect();
            operands.push(match starts.iter().all(|&start| start == 0) {
                true => self.builder().scalar(DType::S64, 0.0),
                false => self.value_of_device(Tensor::from_vec(DType::S64, vec![starts.len() as u64], starts)),
            });
        }
        Some(self.builder().add_inst(symbolic::Op::DynamicSlice(constant_dims(&part)), &operands))
    }

    /// The element of a table that belongs to this device; the table has one for each device.
    fn value_of_device(&mut self, table: Tensor) -> InstId {
        let b = self.builder();
        let table = b.constant(table);
        let device = b.push(symbolic::Op::PartitionId, &[], symbolic::Shape::array(DType::U32, vec![]));
        let one = b.add_inst(symbolic::Op::DynamicSlice(constant_dims(&[1])), &[table, device]);
        b.reshape(one, &[])
    }

    /// Partial sums that add up to `part`: the part itself on the device of the first one, zeros on the others.
    fn first_term(&mut self, part: InstId, sharding: &Sharding) -> InstId {
        let is_first: Vec<bool> = sharding.partial_sum_indices().iter().map(|&term| term == 0).collect();
        let one = self.value_of_device(Tensor::from_bools(&[is_first.len() as u64], &is_first));
        let b = self.builder();
        let dims = b.dims(part).to_vec();
        let (chosen, zeros) = (b.broadcast(one, &dims, &[]), b.full_like(part, 0.0));
        b.select(chosen, part, zeros)
    }

    /// An array under another sharding.
    ///
    /// # Errors
    /// `Code::HloUnsupported` for sizes that do not divide evenly.
    fn reshard(&mut self, id: InstId, sharding: &Sharding) -> Result<InstId> {
        if self.shard(id).is_some_and(|own| own.sharding == *sharding) {
            return Ok(id);
        }
        let x = self.gather_whole_array(id);
        if sharding.is_replicated() {
            return Ok(x);
        }
        let whole = self.pinned_dims(x);
        let mut part = self.part_of(x, sharding).ok_or_else(|| uneven_error(sharding, &whole))?;
        if sharding.partial_sums > 1 {
            part = self.first_term(part, sharding);
        }
        self.mark_shard(part, Shard { sharding: sharding.clone(), whole });
        Ok(part)
    }

    /// The results of the entry under the shardings that its function states, and the shardings of arguments and results.
    pub(super) fn shard_results(
        &mut self,
        function: &FuncOp,
        args: &[InstId],
        results: &[InstId],
    ) -> Result<(Vec<InstId>, ProgramShardings)> {
        let mut made = Vec::with_capacity(results.len());
        for (i, &id) in results.iter().enumerate() {
            let Some(rank) = self.builder().shape(id).as_array().map(|a| a.rank()) else {
                made.push(id);
                continue;
            };
            let port = function.results.get(i);
            let stated = port.map(|port| stated_sharding(self.functions, port, rank)).transpose()?.flatten();
            made.push(match stated {
                Some(sharding) => self.reshard(id, &sharding)?,
                None => id,
            });
        }
        let mut text = |id: &InstId| self.shard(*id).map_or("{replicated}".to_string(), |own| own.sharding.to_string());
        let arguments = args.iter().map(&mut text).collect();
        let results = made.iter().map(&mut text).collect();
        Ok((made, ProgramShardings { arguments, results }))
    }

    /// Converts an operation that states shardings: its results are its operands under another sharding.
    pub(super) fn convert_sharding_constraint(&mut self, op: &Operation, operands: &[InstId]) -> Result<Vec<InstId>> {
        let Some(MlirAttr::Text(text)) = op.attr(&["sharding"]) else { return Ok(operands.to_vec()) };
        let one = |&id: &InstId| {
            let Some(rank) = self.builder().shape(id).as_array().map(|a| a.rank()) else { return Ok(id) };
            // A placement does not change values, so that one that is not known, or that XLA would pad for, is left out.
            let Ok(sharding) = self.sharding(text, None, rank) else { return Ok(id) };
            let dims = match self.shard(id) {
                Some(own) => own.whole,
                None => self.pinned_dims(id),
            };
            if sharding.part_dims(&dims).is_none() { Ok(id) } else { self.reshard(id, &sharding) }
        };
        operands.iter().map(one).collect()
    }

    /// Converts a manual computation (`sdy.manual_computation`) in place.
    pub(super) fn convert_manual_computation(
        &mut self,
        op: &'a Operation,
        operands: &[InstId],
        outer: &SymbolScope,
    ) -> Result<Vec<InstId>> {
        let [region] = &op.regions[..] else { return Err(error_at(op, Code::HloSyntax, "expects one region")) };
        let manual = manual_axes(op);
        let (wanted, given) = (sharding_texts(op, "in_shardings"), sharding_texts(op, "out_shardings"));
        if region.args.len() != operands.len() || wanted.len() != operands.len() || given.len() != op.types.len() {
            return Err(error_at(op, Code::HloSyntax, "expects as many values and shardings as arguments and results"));
        }
        let mut scope = SymbolScope { open: outer.open, ..SymbolScope::default() };
        for (((name, shape), &id), text) in region.args.iter().zip(operands).zip(&wanted) {
            let rank = shape.as_array().map_or(0, |a| a.rank());
            let part = self.reshard(id, &self.sharding(text, Some(&manual), rank)?)?;
            self.has_part(op, part, shape)?;
            scope.values.insert(name.clone(), vec![part]);
        }
        let inside = self.device_classes_inside(&manual, wanted.iter().chain(&given).next());
        self.enter(op)?;
        let results = self.convert_body(region, &mut scope, inside)?;
        self.leave();
        let mut made = Vec::with_capacity(results.len());
        for ((&id, whole), text) in results.iter().zip(&op.types).zip(&given) {
            let rank = self.builder().rank(id);
            let sharding = self.sharding(text, Some(&manual), rank)?;
            made.push(self.copy_manual_result(id, whole, &sharding));
        }
        Ok(made)
    }

    /// Copies a result of a manual computation and records its sharding: outside, the same value may be another shard.
    fn copy_manual_result(&mut self, id: InstId, whole: &Shape, sharding: &Sharding) -> InstId {
        let b = self.builder();
        let shape = b.shape(id).clone();
        let own = b.push(symbolic::Op::Copy, &[id], shape);
        if let (Some(whole), false) = (whole.as_array(), sharding.is_replicated()) {
            self.mark_shard(own, Shard { sharding: sharding.clone(), whole: whole.dims.clone() });
        }
        own
    }

    /// For each device, its class inside of a manual computation: devices of one class differ only along axes that are not manual.
    fn device_classes_inside(&self, manual: &[String], sharding: Option<&String>) -> Vec<u64> {
        let name = sharding.and_then(|text| text.trim_start_matches("<@").split(',').next());
        let Some(mesh) = name.and_then(|name| self.functions.meshes.get(name.trim_matches('"'))) else {
            return self.device_classes.clone();
        };
        let count: u64 = mesh.axes.iter().filter(|axis| manual.contains(&axis.0)).map(|axis| axis.1).product();
        let outer = |device: usize| self.device_classes.get(device).copied().unwrap_or(0);
        mesh.indices_along(manual).iter().enumerate().map(|(device, own)| outer(device) * count + own).collect()
    }

    /// Converts the body of a manual computation, which treats shards like whole arrays. `inside` has the class of each device there: devices of
    /// one class have the same manual coordinates.
    fn convert_body(
        &mut self,
        region: &'a RegionBlock,
        scope: &mut SymbolScope,
        inside: Vec<u64>,
    ) -> Result<Vec<InstId>> {
        let (shards, classes) = (std::mem::take(&mut self.shards), std::mem::replace(&mut self.device_classes, inside));
        let gathered = std::mem::take(&mut self.gathered);
        // Functions are converted anew inside, as groups of devices are others there.
        let done = std::mem::take(&mut self.done);
        let results = self.convert_region(region, scope).map(|results| self.gather_whole_arrays(&results));
        (self.shards, self.gathered, self.device_classes, self.done) = (shards, gathered, classes, done);
        results
    }

    /// Converts `Sharding`, `SPMDFullToShardShape` or `SPMDShardToFullShape` of one array; `None` for other calls.
    pub(super) fn convert_sharding_call(&mut self, op: &Operation, operands: &[InstId]) -> Result<Option<Vec<InstId>>> {
        let (&[x], [shape]) = (operands, &op.types[..]) else { return Ok(None) };
        if !takes_shards(op) {
            return Ok(None);
        }
        let stated = match op.attr(SHARDING_ATTRIBUTES) {
            Some(MlirAttr::Text(text)) => {
                let rank = self.builder().rank(x);
                Some(self.sharding(text, None, rank)?)
            }
            _ => None,
        };
        let made = match (target(op), stated) {
            (Some("Sharding"), Some(sharding)) => self.reshard(x, &sharding)?,
            (Some("SPMDFullToShardShape"), _) => {
                self.has_part(op, x, shape)?;
                // Outside, the argument itself remains a shard.
                self.builder().push(symbolic::Op::Copy, &[x], shape.to_symbolic())
            }
            (Some("SPMDShardToFullShape"), Some(sharding)) => self.copy_manual_result(x, shape, &sharding),
            _ => return Ok(None),
        };
        Ok(Some(vec![made]))
    }

    fn has_part(&mut self, op: &Operation, id: InstId, shape: &Shape) -> Result<()> {
        if self.builder().shape(id).pin_sizes().same_type_and_dims(shape) {
            return Ok(());
        }
        let told = format!("a device has {} of an array where it needs {shape}", self.builder().shape(id));
        Err(error_at(op, Code::HloUnsupported, told))
    }
}

/// Parses a mesh.
///
/// # Errors
/// `Code::HloUnsupported` for texts that are none.
pub(super) fn read_mesh(name: &str, text: &str) -> Result<Mesh> {
    let told = || format!("the mesh `{name}` is written as `{text}`, which is not known");
    Mesh::parse(text).ok_or_else(|| Error::user(Code::HloUnsupported, told()))
}
