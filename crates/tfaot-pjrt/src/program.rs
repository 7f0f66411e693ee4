//! A compiled program: its code in memory, and what callers ask about it.
use crate::compile_options::CompileOptions;
use crate::failure::{Code, Failure};
use crate::ffi::{CallFacts, CallSite, host_call};
use crate::optimized_text::with_custom_calls;
use serde::{Deserialize, Serialize};
use std::ffi::c_void;
use tfaot::DType;
use tfaot::Target;
use tfaot::compile::Built;
use tfaot::hlo::{Module, stablehlo};
use tfaot::kernel::{HOST_CALL_SYMBOL, ModelInterface, callees};
use tfaot::optimize::HostCalls;
use tfaot::package::header;
use tfaot::run::{Executable, ExternalCode};
use tfaot::tensor::{DTYPES, TensorInfo};
use tfaot::util::pieces::Pieces;

/// The name of programs in C, which is the same for all: each is loaded by itself.
pub const C_NAME: &str = "program";

/// Bytes of the longest optimized text that is serialized with a program of one device, which needs none to run.
const LONGEST_TEXT: usize = 1 << 20;

/// The type and the sizes of an argument or a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Array {
    /// XLA's name of the element type.
    dtype: String,
    /// The size of each axis.
    pub dims: Vec<i64>,
}

impl Array {
    /// The type of a tensor.
    ///
    /// # Errors
    /// `Code::ResourceExhausted` for sizes beyond what callers can say.
    pub fn of(info: &TensorInfo) -> Result<Array, Failure> {
        let size =
            |&n: &u64| i64::try_from(n).map_err(|_| Failure::new(Code::ResourceExhausted, "an axis is too long"));
        Ok(Array { dtype: info.dtype.name().to_string(), dims: info.dims.iter().map(size).collect::<Result<_, _>>()? })
    }

    /// The element type.
    ///
    /// # Errors
    /// `Code::InvalidArgument` for a name that is none.
    pub fn dtype(&self) -> Result<DType, Failure> {
        let found = DTYPES.iter().copied().find(|t| t.name() == self.dtype);
        found.ok_or_else(|| Failure::new(Code::InvalidArgument, format!("there is no type `{}`", self.dtype)))
    }
}

/// Facts about a program that its object does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The name of the module.
    pub name: String,
    /// Types of the arguments.
    pub args: Vec<Array>,
    /// Types of the results.
    pub results: Vec<Array>,
    /// Arguments whose memory callers give away.
    pub donated: Vec<usize>,
    /// Multiplications and additions of a call.
    pub flops: i64,
    /// The processor that the code is for.
    pub cpu: String,
    /// The message that the program was compiled with.
    pub options: Vec<u8>,
    /// Calls of functions of the user, by number.
    pub host_calls: Vec<CallFacts>,
    /// Whether the code has a further result, a scalar that orders effects.
    pub has_effects: bool,
    /// The C header of the object; empty until the program is serialized, and for code that calls functions of the process.
    pub header: String,
    /// The optimized module as text, from which JAX learns how results are divided among devices; none until the program is serialized, and
    /// for a long text of a program of one device.
    pub optimized_text: Option<String>,
    /// Number of bytes of the object, which stands before the facts, behind whatever others have put before it; 0 until it is serialized.
    pub object_bytes: u64,
}

/// The setting that a program was compiled for.
#[derive(Clone, Copy, Debug)]
pub struct CompiledFor<'a> {
    /// The processor.
    pub cpu: &'a str,
    /// The message of compile options.
    pub options: &'a [u8],
}

/// A compiled program.
pub struct Program {
    /// Facts about it.
    pub facts: Facts,
    /// The object, as `tfaot compile` writes it.
    pub object: Pieces,
    /// The code in memory.
    pub code: Executable,
    /// Calls of functions of the user, by number.
    pub sites: Vec<CallSite>,
    /// A hash of the object and the facts.
    pub fingerprint: String,
    /// The module after optimization; none for a program that was deserialized.
    pub module: Option<Module>,
    /// The interface of the object in C; none for a program that was deserialized.
    interface: Option<Box<ModelInterface>>,
}

impl Program {
    /// Loads a program that was just compiled.
    ///
    /// # Errors
    /// Errors of loading an object; `Code::Unimplemented` for custom calls without a function; `Code::ResourceExhausted` for sizes beyond what callers can say.
    pub fn of_built(
        built: Built,
        calls: &HostCalls,
        donated: Vec<usize>,
        about: CompiledFor,
    ) -> Result<Program, Failure> {
        let Built { module, program, object } = built;
        let interface = Some(Box::new(ModelInterface::of_program(&program)));
        if let Some(callee) = callees([&program]).first() {
            let told = format!(
                "no function is registered for the custom call `{}`: jax.ffi.register_ffi_target registers one for the platform cpu",
                callee.name
            );
            return Err(Failure::new(Code::Unimplemented, told));
        }
        let all = |infos: &[TensorInfo]| infos.iter().map(Array::of).collect::<Result<Vec<_>, _>>();
        // the last result orders effects, and is none of the caller's
        let seen = program.results.len() - usize::from(calls.has_effects);
        let CompiledFor { cpu, options } = about;
        let facts = Facts {
            host_calls: calls.all.iter().map(CallFacts::new).collect::<Result<_, _>>()?,
            has_effects: calls.has_effects,
            header: String::new(),
            optimized_text: None,
            object_bytes: 0,
            name: module.name.clone(),
            args: all(&program.args)?,
            results: all(&program.results[..seen])?,
            donated,
            flops: i64::try_from(program.flops).unwrap_or(i64::MAX),
            cpu: cpu.to_string(),
            options: options.to_vec(),
        };
        Ok(Program { module: Some(module), interface, ..Program::load(facts, object.content)? })
    }

    /// The module after optimization, as text of StableHLO.
    ///
    /// # Errors
    /// `Code::Unimplemented` for a program that was serialized without it; errors of the printer.
    pub fn optimized_text(&self) -> Result<String, Failure> {
        match (&self.module, &self.facts.optimized_text) {
            (Some(module), _) => Ok(with_custom_calls(&stablehlo::print(module)?)),
            (None, Some(text)) => Ok(text.clone()),
            (None, None) => Err(Failure::new(Code::Unimplemented, "the executable was serialized without its module")),
        }
    }

    /// The facts with what is asked of a deserialized program: the C header of the object, for a processor, and the optimized text.
    pub fn facts_to_serialize(&self, target: &Target) -> Facts {
        let devices = CompileOptions::read(&self.facts.options).map_or(1, |options| options.device_count());
        let optimized_text = self.optimized_text().ok().filter(|text| devices > 1 || text.len() <= LONGEST_TEXT);
        let own = self.interface.as_ref().filter(|face| !face.calls_host);
        let header = own.map_or_else(|| self.facts.header.clone(), |face| header::header(face, &[target]));
        Facts { header, optimized_text, object_bytes: self.object.len(), ..self.facts.clone() }
    }

    /// Loads an object with what is known about it.
    ///
    /// # Errors
    /// Errors of loading an object.
    pub fn load(facts: Facts, object: Pieces) -> Result<Program, Failure> {
        let sites = facts.host_calls.iter().map(CallSite::new).collect::<Result<_, _>>()?;
        let host = ExternalCode { code: host_call as *const c_void, context: std::ptr::null() };
        let code = Executable::load(&object, C_NAME, &|name| (name == HOST_CALL_SYMBOL).then_some(host))?;
        let mut hash = blake3::Hasher::new();
        for piece in object.iter() {
            hash.update(piece);
        }
        hash.update(format!("{facts:?}").as_bytes());
        Ok(Program {
            fingerprint: hash.finalize().to_hex().to_string(),
            facts,
            object,
            code,
            sites,
            module: None,
            interface: None,
        })
    }
}
