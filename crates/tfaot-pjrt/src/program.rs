//! A compiled program: its code in memory, and what callers ask about it.
use crate::failure::{Code, Failure};
use serde::{Deserialize, Serialize};
use tfaot::DType;
use tfaot::compile::Built;
use tfaot::hlo::Module;
use tfaot::kernel::callees;
use tfaot::run::Executable;
use tfaot::tensor::{DTYPES, TensorInfo};
use tfaot::util::pieces::Pieces;

/// The name of programs in C, which is the same for all: each is loaded by itself.
pub const C_NAME: &str = "program";

/// The type and the sizes of an argument or a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Array {
    /// XLA's name of the element type.
    dtype: String,
    /// The size of each axis.
    pub dims: Vec<i64>,
}

impl Array {
    fn of(info: &TensorInfo) -> Result<Array, Failure> {
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
}

/// A compiled program.
pub struct Program {
    /// Facts about it.
    pub facts: Facts,
    /// The object, as `tfaot compile` writes it.
    pub object: Pieces,
    /// The code in memory.
    pub code: Executable,
    /// A hash of the object and the facts.
    pub fingerprint: String,
    /// The module after optimization; none for a program that was deserialized.
    pub module: Option<Module>,
}

impl Program {
    /// Loads a program that was just compiled.
    ///
    /// # Errors
    /// Errors of loading an object; `Code::Unimplemented` for custom calls; `Code::ResourceExhausted` for sizes beyond what callers can say.
    pub fn of_built(built: Built, donated: Vec<usize>, cpu: &str, options: &[u8]) -> Result<Program, Failure> {
        let Built { module, program, object } = built;
        if let Some(callee) = callees([&program]).first() {
            let told = format!("the program calls `{}`, and tfaot's plugin runs no functions of the user", callee.name);
            return Err(Failure::new(Code::Unimplemented, told));
        }
        let all = |infos: &[TensorInfo]| infos.iter().map(Array::of).collect::<Result<Vec<_>, _>>();
        let facts = Facts {
            name: module.name.clone(),
            args: all(&program.args)?,
            results: all(&program.results)?,
            donated,
            flops: i64::try_from(program.flops).unwrap_or(i64::MAX),
            cpu: cpu.to_string(),
            options: options.to_vec(),
        };
        Ok(Program { module: Some(module), ..Program::load(facts, object.content)? })
    }

    /// Loads an object with what is known about it.
    ///
    /// # Errors
    /// Errors of loading an object.
    pub fn load(facts: Facts, object: Pieces) -> Result<Program, Failure> {
        let code = Executable::load(&object, C_NAME, &|_| None)?;
        let mut hash = blake3::Hasher::new();
        for piece in object.iter() {
            hash.update(piece);
        }
        hash.update(format!("{facts:?}").as_bytes());
        Ok(Program { fingerprint: hash.finalize().to_hex().to_string(), facts, object, code, module: None })
    }
}
