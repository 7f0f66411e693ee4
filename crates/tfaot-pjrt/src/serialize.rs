//! Executables as bytes: tfaot's object, a relocatable file as any linker takes it, and behind it what the interface wants besides.
//!
//! The last bytes are the facts as JSON, their number of bytes (eight bytes, the lowest first) and a mark of eight bytes.
use crate::boundary::{GivenBytes, delete_bytes, give, object, slice};
use crate::c_api::executable::{
    ExecutableDeserializeAndLoadArgs, ExecutableGetCompileOptionsArgs, ExecutableSerializeArgs,
};
use crate::client::Client;
use crate::compile_options::CompileOptions;
use crate::executable::{Executable, LoadedExecutable};
use crate::failure::{Code, Failure};
use crate::program::{Facts, Program};
use std::sync::Arc;
use tfaot::Target;
use tfaot::util::pieces::Pieces;

/// The mark at the end, with the number of this form.
const MARK: &[u8; 8] = b"TFAOTPJ3";

fn to_bytes(program: &Program) -> Result<Vec<u8>, Failure> {
    let target = Target::resolve(None, None, None)?;
    let facts = program.facts_to_serialize(&target);
    let facts = serde_json::to_vec(&facts).map_err(|e| Failure::new(Code::Internal, format!("no JSON: {e}")))?;
    let mut bytes = program.object.to_bytes().to_vec();
    bytes.extend(&facts);
    bytes.extend((facts.len() as u64).to_le_bytes());
    bytes.extend(MARK);
    Ok(bytes)
}

fn from_bytes(bytes: &[u8], client: &Client) -> Result<Program, Failure> {
    let damaged = || Failure::new(Code::InvalidArgument, "the bytes are no executable that this version of tfaot made");
    let rest = bytes.strip_suffix(MARK).ok_or_else(damaged)?;
    let (rest, count) = rest.split_last_chunk::<8>().ok_or_else(damaged)?;
    let count = usize::try_from(u64::from_le_bytes(*count)).ok().filter(|&n| n <= rest.len()).ok_or_else(damaged)?;
    let (object, facts) = rest.split_at(rest.len() - count);
    let facts: Facts = serde_json::from_slice(facts).map_err(|_| damaged())?;
    if facts.cpu != client.target.cpu {
        let told = format!("the executable is for {}, and this machine has {}", facts.cpu, client.target.cpu);
        return Err(Failure::new(Code::FailedPrecondition, told));
    }
    Program::load(facts, Pieces::from(object.to_vec()))
}

/// `PJRT_Executable_Serialize`.
pub fn serialize(args: &mut ExecutableSerializeArgs) -> Result<(), Failure> {
    let given = GivenBytes::new(to_bytes(&object(args.executable)?.program)?);
    (args.serialized_bytes, args.serialized_bytes_size) = (given.at, given.count);
    (args.serialized_executable, args.serialized_executable_deleter) = (given.owner.cast(), Some(delete_bytes as _));
    Ok(())
}

/// `PJRT_Executable_GetCompileOptions`.
pub fn compile_options(args: &mut ExecutableGetCompileOptionsArgs) -> Result<(), Failure> {
    let given = GivenBytes::new(object(args.executable)?.program.facts.options.clone());
    (args.serialized_bytes, args.serialized_bytes_size) = (given.at, given.count);
    (args.serialized_compile_options, args.serialized_compile_options_deleter) =
        (given.owner.cast(), Some(delete_bytes as _));
    Ok(())
}

/// `PJRT_Executable_DeserializeAndLoad`.
pub fn deserialize_and_load(args: &mut ExecutableDeserializeAndLoadArgs) -> Result<(), Failure> {
    let bytes = slice(args.serialized_executable.cast::<u8>(), args.serialized_executable_size);
    let program = from_bytes(bytes, object(args.client)?)?;
    let overridden =
        slice(args.overridden_serialized_compile_options.cast::<u8>(), args.overridden_serialized_compile_options_size);
    let options = if overridden.is_empty() { &program.facts.options } else { overridden };
    let options = CompileOptions::read(options)?;
    let executable = Executable::new(Arc::new(program))?;
    args.loaded_executable = give(LoadedExecutable::new(executable, args.client, &options)?);
    Ok(())
}
