//! `tfaot hlo run --replicas`: runs a module on all its devices at once, one thread for each.
use super::args::{Engine, HloCall, HloRun};
use super::modules::{leaf_infos, literal_from_leaves, load};
use super::{ExitStatus, dump, graph, out};
use crate::codegen::Launches;
use crate::compile;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::{Module, Shape, verify};
use crate::interp;
use crate::run;
use crate::run::{arguments, npz};
use crate::tensor::{Tensor, TensorInfo};
use crate::verify::compare_engines;

/// Runs the module by the requested engines on `replicas` devices; two engines are compared on every rank.
///
/// # Errors
/// `Code::SeveralDevices` for a module for another number of devices; those of a run on one device.
pub fn run(args: &HloRun, replicas: u64) -> Result<ExitStatus> {
    let mut module = load(&args.call.file, &args.call.dims)?;
    for_devices(&mut module, replicas)?;
    verify::verify(&module).map_err(|e| e.in_file(&args.call.file))?;
    compile::expand_library_calls(&mut module).map_err(|e| e.in_file(&args.call.file))?;
    let shapes: Vec<Shape> = module.entry().params.iter().map(|&p| module.entry()[p].shape.clone()).collect();
    let given = arguments_by_rank(&args.call, &leaf_infos(&shapes, "p"), replicas)?;
    let plain = match args.engine.contains(&Engine::Interpreter) {
        true => Some(interpreted(&module, &shapes, &given).map_err(|e| e.in_file(&args.call.file))?),
        false => None,
    };
    let native = if args.engine.contains(&Engine::Native) { Some(compiled(args, module, &given)?) } else { None };
    match (native, plain) {
        (Some(native), Some(plain)) => {
            if args.call.outputs.is_some() {
                write(&args.call, &native)?;
            }
            let keys: Vec<String> = keyed(&native).into_iter().map(|(key, _)| key).collect();
            let compared = compare_engines(&keys, &native.concat(), &plain.concat(), None)?;
            super::verify::print_verification(&compared, false, false)
        }
        (results, others) => write(&args.call, &results.or(others).unwrap_or_default()),
    }
}

/// Sets the number of replicas of a module that states none, and checks that of all others.
fn for_devices(module: &mut Module, count: u64) -> Result<()> {
    match module.devices() {
        [1, 1] => module.extra.push(("replica_count".to_string(), count.to_string())),
        [replicas, partitions] if replicas.checked_mul(partitions) == Some(count) => {}
        [replicas, partitions] => {
            let told =
                format!("the module is for {replicas} replicas of {partitions} partitions, and {count} were asked for");
            let help = format!("--replicas {}", replicas.saturating_mul(partitions));
            return Err(Diagnostic::new(Code::SeveralDevices, told).help(help).into());
        }
    }
    Ok(())
}

/// The arguments of each rank: array `K@R` of the file is argument K of rank R, and array `K` is that of all ranks without one of their
/// own. Random arguments differ between ranks.
fn arguments_by_rank(call: &HloCall, infos: &[TensorInfo], replicas: u64) -> Result<Vec<Vec<Tensor>>> {
    let Some(path) = &call.inputs else {
        let of = |rank: u64| {
            (0..).zip(infos).map(|(i, info)| arguments::random_array(info, rank * infos.len() as u64 + i)).collect()
        };
        return (0..replicas).map(of).collect();
    };
    let arrays = npz::read(path)?;
    let of = |rank: u64| {
        let own = infos.iter().filter_map(|info| {
            let array = arrays.get(&format!("{}@{rank}", info.name)).or_else(|| arrays.get(&info.name))?;
            Some((info.name.clone(), array.clone()))
        });
        arguments::select_arguments(&own.collect(), infos)
    };
    let all: Result<Vec<_>> = (0..replicas).map(of).collect();
    all.map_err(|e| e.in_file(path))
}

fn interpreted(module: &Module, shapes: &[Shape], given: &[Vec<Tensor>]) -> Result<Vec<Vec<Tensor>>> {
    let literals = |leaves: &Vec<Tensor>| {
        let mut leaves = leaves.iter().cloned();
        shapes.iter().map(|s| literal_from_leaves(s, &mut leaves)).collect::<Result<Vec<_>>>()
    };
    let args = given.iter().map(literals).collect::<Result<Vec<_>>>()?;
    let results = interp::evaluate_ranks(module, &args)?;
    Ok(results.iter().map(|value| value.leaves().into_iter().cloned().collect()).collect())
}

fn compiled(HloRun { call, target, .. }: &HloRun, module: Module, given: &[Vec<Tensor>]) -> Result<Vec<Vec<Tensor>>> {
    let lowered = compile::wrap_module(module).map_err(|e| e.in_file(&call.file))?;
    let code = graph::code_request(target)?;
    let flags = dump::dump_flags(&call.xla)?;
    let mut dumped = dump::start(&flags, &lowered.module);
    let built = compile::build(lowered, "hlo", "hlo", &code, Launches::Direct, &mut dumped);
    dump::write(&flags, dumped)?;
    built.and_then(|b| run::call_ranks(&b, &code.target, given)).map_err(|e| e.in_file(&call.file))
}

/// Results with their keys: `K@R` is result K of rank R.
fn keyed(all: &[Vec<Tensor>]) -> Vec<(String, Tensor)> {
    let of = |(rank, results): (usize, &Vec<Tensor>)| {
        results.iter().enumerate().map(move |(k, t)| (format!("{k}@{rank}"), t.clone())).collect::<Vec<_>>()
    };
    all.iter().enumerate().flat_map(of).collect()
}

fn write(call: &HloCall, all: &[Vec<Tensor>]) -> Result<ExitStatus> {
    let named = keyed(all);
    if let Some(path) = &call.outputs {
        npz::write(path, &named)?;
        return Ok(ExitStatus::Yes);
    }
    for (key, tensor) in &named {
        out::line(format_args!("{key}: {tensor:?}"))?;
    }
    if named.is_empty() { Err(Error::internal("hlo run", "no rank has results")) } else { Ok(ExitStatus::Yes) }
}
